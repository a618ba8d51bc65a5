/** Columns to write for: of the terminal, or unbounded where the output is piped (a program reads it). */
export function terminalColumns(stream: { readonly isTTY?: boolean; readonly columns?: number }): number {
  return stream.isTTY === true ? stream.columns || 80 : Number.MAX_SAFE_INTEGER;
}
