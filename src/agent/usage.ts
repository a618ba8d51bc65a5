/** The help of `bulkhead-bus`; every command, one line, then examples. */
export const USAGE = `bulkhead-bus: talk to the bulkhead supervisor through this container's door

Usage: bulkhead-bus COMMAND [ARGUMENTS]

Commands:
  register NAME [VERSION]              say which program works here
  status STATE [MESSAGE] [--percent N] report what is being done now
  progress PERCENT [MESSAGE]           report how far the work is, 0 to 100
  log [--level L] MESSAGE              write to the attempt's log (debug, info, warn, error)
  error MESSAGE [--fatal]              report an error; a fatal one fails the attempt
  get-file TASK PATH [-o FILE]         print (or save) a file as TASK submitted it
  put-artifact FILE [--name NAME]      keep FILE with the results; "-" reads standard input
  context                              print the task's context as JSON
  describe                             print the methods with their JSON Schemas
  ping                                 ask for a sign of life
  raw METHOD [JSON]                    call any method; JSON are its params

Environment:
  BULKHEAD_DOOR   path of the socket (default /run/bulkhead/door.sock)

Exit status: 0 done, 1 the bus refused, 2 wrong usage, 3 the door cannot be reached

Examples:
  bulkhead-bus status testing "running the unit tests" --percent 40
  bulkhead-bus get-file auth_refactor src/auth.py -o /tmp/auth.py
  bulkhead-bus put-artifact coverage.xml --name coverage.xml
  bulkhead-bus raw get_file '{"task_id":"auth_refactor","path":"src/auth.py"}'
`;
