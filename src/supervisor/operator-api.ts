import {
  type CallInfo,
  createDispatcher,
  type Dispatcher,
  defineMethod,
  type MethodHandler,
} from "../bus/dispatch.ts";
import type { DoorConnection } from "../door/door.ts";
import { RunnerError } from "../model/runner-error.ts";
import type { RpcError } from "../protocol/json-rpc.ts";
import type { Logger } from "../util/logger.ts";
import { err, ok } from "../util/result.ts";
import {
  cancelParams,
  gcParams,
  noParams,
  recordParams,
  submitParams,
  watchParams,
} from "./operator-schemas.ts";
import type { Supervisor } from "./supervisor.ts";

export interface OperatorApiDeps {
  readonly supervisor: Supervisor;
  readonly stateId: string;
  readonly version: string;
  readonly logger: Logger;
  /** Ends the process once it is quiet. */
  shutDown(): void;
}

/** Code of every expected refusal on the operator socket; `data.runnerCode` says which. */
const OPERATOR_REFUSED = 5001;

/**
 * The methods of `supervisor.sock`, over the same dispatcher as the bus. Whoever can open the socket (mode 0600) has operator
 * rights. Pushes go out as notifications: `run.event`, `run.output`, `run.sample`, `run.settled`.
 */
export function createOperatorApi(deps: OperatorApiDeps): Dispatcher<DoorConnection> {
  const { supervisor } = deps;
  const methods: Record<string, MethodHandler<DoorConnection>> = {
    hello: defineMethod(noParams, () =>
      ok({ version: deps.version, pid: process.pid, state_id: deps.stateId }),
    ),
    runs: defineMethod(noParams, () => ok({ active: supervisor.activeRuns() })),
    submit: defineMethod(submitParams, (params) =>
      guarded(async () => ({ run_id: await supervisor.submit(params) })),
    ),
    cancel: defineMethod(cancelParams, (params) =>
      guarded(async () => {
        supervisor.cancel(params.run_id, params.task_id, "command line");
        return {};
      }),
    ),
    watch: defineMethod(watchParams, (params, call: CallInfo<DoorConnection>) =>
      guarded(async () => {
        if (!call.connection)
          throw new RunnerError("usage", "watch needs a lasting connection, not one HTTP request");
        const wants = { afterSeq: params.after_seq, output: params.output, samples: params.samples };
        await supervisor.watch(params.run_id, wants, call.connection);
        return {};
      }),
    ),
    gc: defineMethod(gcParams, (params) =>
      guarded(async () => ({
        items: await supervisor.sweep(params.engine, params.dry_run, params.older_than_ms),
      })),
    ),
    record: defineMethod(recordParams, (params) =>
      guarded(async () => {
        supervisor.record(params.run_id, params.event);
        return {};
      }),
    ),
    shutdown: defineMethod(noParams, () => {
      deps.shutDown();
      return ok({});
    }),
  };
  return createDispatcher(methods, {
    answered: () => undefined,
    unforeseen: (failure) =>
      deps.logger.error({ ...failure, cause: String(failure.cause) }, "an operator call failed"),
    maxReplyChars: 64 * 1024 * 1024,
  });
}

/** An expected RunnerError becomes an RPC error that the client can turn back; anything else is a bug for the dispatcher. */
async function guarded(work: () => Promise<unknown>) {
  try {
    return ok(await work());
  } catch (error) {
    if (error instanceof RunnerError) return err(toRpcError(error));
    throw error;
  }
}

function toRpcError(error: RunnerError): RpcError {
  return {
    code: OPERATOR_REFUSED,
    message: error.message,
    data: { runnerCode: error.code, hint: error.hint, details: error.data },
  };
}
