/** Ends an exhaustive switch: the compiler rejects a forgotten case, the throw catches bad data at run time. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}
