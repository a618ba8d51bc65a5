import type { Failure } from "../../model/failure.ts";
import type { Patch } from "../../model/patch.ts";
import type { Result } from "../../util/result.ts";
import type { ImportRequest } from "./change-source.ts";
import { commitChanges } from "./commit-changes.ts";
import { openFastImport } from "./fast-import.ts";
import { createProblemList } from "./problem-list.ts";

/** The patch of an attempt that is known to have written nothing. */
export async function importNothing(request: ImportRequest): Promise<Result<Patch, Failure>> {
  const session = openFastImport(request.gitDir);
  try {
    const found = { changes: [], ignored: { files: 0, bytes: 0 } };
    return await commitChanges(session, request, found, createProblemList());
  } finally {
    await session.close();
  }
}
