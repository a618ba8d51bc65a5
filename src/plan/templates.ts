import { generateSchemas, SCHEMA_FILES } from "./json-schema.ts";

/**
 * What `bulkhead init` writes, by path below the folder. The schemas lie beside the tasks, because that is the only place an editor finds
 * them in every case: bulkhead may be installed globally, and a URL needs a network. Folders named with a dot are no tasks.
 */
export function projectTemplates(): ReadonlyMap<string, string> {
  const schemas = Object.entries(generateSchemas()).map(
    ([name, text]) => [`${SCHEMA_FOLDER}/${name}`, text] as const,
  );
  return new Map([
    ["bulkhead.yaml", CONFIG],
    ["tasks/count-files.yaml", COUNT_FILES],
    ["tasks/list-notes.yaml", LIST_NOTES],
    ["tasks/write-report.yaml", WRITE_REPORT],
    ...schemas,
  ]);
}

const SCHEMA_FOLDER = "tasks/.schema";
const TASK_SCHEMA = `# yaml-language-server: $schema=.schema/${SCHEMA_FILES.task}`;

const CONFIG = `# yaml-language-server: $schema=${SCHEMA_FOLDER}/${SCHEMA_FILES.config}
#
# Settings of bulkhead for this repository. Everything is optional; what is commented out shows the default.

defaults:
  # image: bulkhead/agent:latest     # container image of every task
  # agent: my-agent                  # agent of tasks with a prompt (see agents below)
  timeout: 10m                       # hard limit of one attempt
  # retries: 2                       # after faults of the host; list others with retries: {on: [timeout]}
  caps:
    cpus: 1
    memory: 1GiB
    # pids: 256
    # disk: none
  # caps_mode: strict                # refuse to start where a cap is not enforced
  # slots: 4                         # attempts at once
  # dirty: refuse                    # uncommitted changes: ignore, include, refuse; asked for where nothing is said

  # A patch that touches one of these waits for a person, whatever the agent says.
  protect:
    - .github/
    - .gitlab-ci.yml
    - Dockerfile*
    - bulkhead.yaml

# Programs that take a prompt. argv is run as it is, without a shell; the prompt comes on standard input.
# agents:
#   my-agent:
#     argv: [my-agent, --headless]
#     prompt_by: stdin               # or: argument

# Names of variables whose values are kept out of output and logs.
# secrets: [MY_API_KEY]
`;

const COUNT_FILES = `${TASK_SCHEMA}
#
# The smallest task: a name and a shell script. It runs in its own container on its own copy of the repository;
# whatever it changes comes out as a patch.

id: count-files
run: |
  mkdir -p reports
  git -c core.quotePath=false ls-files | sed -n 's/.*\\.\\([A-Za-z0-9]*\\)$/\\1/p' | sort | uniq -c | sort -rn > reports/files.txt
`;

const LIST_NOTES = `${TASK_SCHEMA}
#
# Runs at the same time as count-files: neither waits for the other.

id: list-notes
run: |
  mkdir -p reports
  git -c core.quotePath=false grep -n -I -E 'TODO|FIXME' > reports/notes.txt || echo 'none' > reports/notes.txt
timeout: 5m
caps:
  memory: 512m
`;

const WRITE_REPORT = `${TASK_SCHEMA}
#
# Waits for both, and starts on top of their patches: their files are there.

id: write-report
title: Join the findings in one report
depends_on: [count-files, list-notes]
run: |
  {
    echo '# Report'
    echo
    echo '## Files by kind'
    cat reports/files.txt
    echo
    echo '## Open notes'
    cat reports/notes.txt
  } > reports/REPORT.md
verify:
  - test -s reports/REPORT.md
`;
