/**
 * What goes wrong outside a task's own outcome: bad usage, bad config, a machine that is not fit.
 * Decide on `code` and `data`, never on the text.
 */
export const RUNNER_ERROR_CODES = [
  "usage",
  "plan-invalid",
  "config-invalid",
  "not-a-repository",
  "repository-refused",
  "run-not-found",
  "task-not-found",
  "apply-refused",
  "undo-refused",
  "engine-unreachable",
  "image-missing",
  "preflight-failed",
  "workspace-failed",
  "store-failed",
  "supervisor-unreachable",
  "git-failed",
  "timeout",
  "internal",
] as const;
export type RunnerErrorCode = (typeof RUNNER_ERROR_CODES)[number];

export class RunnerError extends Error {
  override readonly name = "RunnerError";
  readonly code: RunnerErrorCode;
  readonly data: Readonly<Record<string, unknown>>;
  /** One line that tells the person what to do next. */
  readonly hint: string | undefined;

  constructor(
    code: RunnerErrorCode,
    message: string,
    options: { cause?: unknown; data?: Record<string, unknown>; hint?: string } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.data = options.data ?? {};
    this.hint = options.hint;
  }
}
