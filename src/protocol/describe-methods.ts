import { z } from "zod";
import type { MethodSpec } from "./bus-methods.ts";
import { ERROR_CODES } from "./error-codes.ts";

/** What `describe` answers: every method with the JSON Schemas of params and result, and the code table. */
export interface Description {
  readonly protocol: number;
  readonly methods: ReadonlyArray<{
    readonly name: string;
    readonly summary: string;
    readonly params: Readonly<Record<string, unknown>>;
    readonly result: Readonly<Record<string, unknown>>;
  }>;
  readonly errors: ReadonlyArray<{ readonly code: number; readonly name: string; readonly meaning: string }>;
}

/** Builds the description of a method table. Costs milliseconds: build it once. */
export function describeMethods(
  methods: Readonly<Record<string, MethodSpec>>,
  protocol: number,
): Description {
  return {
    protocol,
    methods: Object.entries(methods).map(([name, spec]) => ({
      name,
      summary: spec.summary,
      params: z.toJSONSchema(spec.params, { io: "input" }),
      result: z.toJSONSchema(spec.result, { io: "output" }),
    })),
    errors: Object.entries(ERROR_CODES).map(([name, entry]) => ({ name, ...entry })),
  };
}
