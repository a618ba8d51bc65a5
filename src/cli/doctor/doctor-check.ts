/** One line of `bulkhead doctor`: what was looked at, how it is, what to do. */
export interface DoctorCheck {
  readonly name: string;
  readonly state: "ok" | "warn" | "fail";
  readonly detail: string;
  /** The next step where it is not ok. */
  readonly hint?: string;
}

export function passed(name: string, detail: string): DoctorCheck {
  return { name, state: "ok", detail };
}

export function warned(name: string, detail: string, hint: string): DoctorCheck {
  return { name, state: "warn", detail, hint };
}

export function failed(name: string, detail: string, hint: string): DoctorCheck {
  return { name, state: "fail", detail, hint };
}

/** The message of anything thrown, and its hint if it has one, as a failed check. */
export function failedBy(name: string, cause: unknown, hint: string): DoctorCheck {
  const own = cause as { message?: unknown; hint?: unknown };
  const detail = typeof own.message === "string" ? own.message : String(cause);
  return failed(name, detail, typeof own.hint === "string" ? own.hint : hint);
}
