/**
 * Reads vitest's JSON report and ends with "N passed, N failed": `node scripts/summarize-tests.ts REPORT VITEST_EXIT_CODE`.
 * Stricter than vitest: skipped tests and a run without tests are failures too.
 */
import { readFileSync } from "node:fs";
import { z } from "zod";

const reportSchema = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number(),
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      assertionResults: z.array(z.object({ status: z.string() })),
    }),
  ),
});

const [reportPath = "", vitestStatus = ""] = process.argv.slice(2);
const report = readReport(reportPath);
const skipped = report.numPendingTests + report.numTodoTests;
// A file that does not even load has no test that could count as failed.
const brokenFiles = report.testResults.filter(
  ({ status, assertionResults }) =>
    status === "failed" && assertionResults.every((test) => test.status !== "failed"),
);
for (const { name } of brokenFiles) console.log(`failed as a whole: ${name}`);
if (skipped > 0) console.log(`${skipped} tests were skipped; every test has to run`);
if (report.numPassedTests === 0) console.log("no test passed");

const counted = report.numFailedTests + brokenFiles.length + skipped;
// An error outside of any test (an unhandled rejection, a crash) shows only in how vitest ended.
const isUncounted = counted === 0 && vitestStatus !== "0";
if (isUncounted) console.log(`vitest ended with ${vitestStatus} though no test failed: see its output above`);
const failed = counted + (isUncounted ? 1 : 0);
console.log(`${report.numPassedTests} passed, ${failed} failed`);
process.exitCode = failed > 0 || report.numPassedTests === 0 ? 1 : 0;

function readReport(path: string): z.infer<typeof reportSchema> {
  try {
    return reportSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (cause) {
    console.log(`vitest ended with ${vitestStatus} and left no report: ${String(cause)}`);
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
  }
}
