/** Runs every step in order, also after one that fails, and returns what failed. For teardown. */
export async function runSteps(steps: ReadonlyArray<() => Promise<void>>): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  return failures;
}
