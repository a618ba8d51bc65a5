/** The narrow logger that parts are given; pino implements it. For the people who run the supervisor, not for events. */
export interface Logger {
  debug(data: object, message: string): void;
  info(data: object, message: string): void;
  warn(data: object, message: string): void;
  error(data: object, message: string): void;
}
