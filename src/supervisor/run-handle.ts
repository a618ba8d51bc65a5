import type { LoggedEvent, RunOutcome } from "../model/event.ts";
import type { RunId, TaskId } from "../model/ids.ts";
import { RunnerError } from "../model/runner-error.ts";
import type { RpcClient } from "./rpc-client.ts";
import type { OutputPiece, TaskSample } from "./run-controller.ts";

/** What a watcher of a run is told, in order. Events are complete; output and samples are best effort. */
export type RunMessage =
  | { readonly kind: "event"; readonly logged: LoggedEvent }
  | { readonly kind: "output"; readonly piece: OutputPiece }
  | { readonly kind: "samples"; readonly atMs: number; readonly samples: readonly TaskSample[] };

/** A run seen from a client. Closing it leaves the run going: the supervisor is its own process. */
export interface RunHandle {
  readonly runId: RunId;
  /** Messages from the first event on; ends when the run has settled. May be iterated once. */
  messages(): AsyncIterableIterator<RunMessage>;
  /** Settles when the run has settled. Rejects with RunnerError `supervisor-unreachable` when the supervisor is lost before. */
  readonly outcome: Promise<RunOutcome>;
  cancel(taskId?: TaskId): Promise<void>;
  /** Stops watching; the run goes on. */
  detach(): void;
}

/** Messages kept for an iterator that has not asked yet; past it the socket is no longer read in effect by the server's own bound. */
export function watchHandle(
  client: RpcClient,
  runId: RunId,
  wants: { output: boolean; samples: boolean },
): RunHandle {
  const queue: RunMessage[] = [];
  let wake: () => void = () => undefined;
  let ended = false;
  let lost: RunnerError | null = null;
  let outcome: RunOutcome | null = null;
  let settle: (value: RunOutcome) => void = () => undefined;
  let fail: (error: RunnerError) => void = () => undefined;
  const settled = new Promise<RunOutcome>((resolve, reject) => {
    settle = resolve;
    fail = reject;
  });
  settled.catch(() => undefined /* whoever awaits `outcome` sees it; nobody has to */);

  const push = (message: RunMessage): void => {
    queue.push(message);
    wake();
  };
  const end = (error: RunnerError | null): void => {
    if (ended) return;
    ended = true;
    lost = error;
    if (error) fail(error);
    else if (outcome) settle(outcome);
    else fail(new RunnerError("internal", `run ${runId} settled without an outcome`));
    client.close();
    wake();
  };
  client.onNotification((method, params) => {
    if (method === "run.event") {
      const logged = params as LoggedEvent;
      if (logged.event.type === "run-finished") outcome = logged.event.outcome;
      push({ kind: "event", logged });
    } else if (method === "run.output") push({ kind: "output", piece: params as OutputPiece });
    else if (method === "run.sample") {
      const { at_ms: atMs, samples } = params as { at_ms: number; samples: readonly TaskSample[] };
      push({ kind: "samples", atMs, samples });
    } else if (method === "run.settled") end(null);
  });
  // The open "watch" call fails with the connection, before `closed` settles: both ways lead to the same words.
  const lose = (): void =>
    end(
      new RunnerError("supervisor-unreachable", `lost the supervisor while run ${runId} was going on`, {
        hint: "see supervisor.log in the state directory; `bulkhead gc` removes what was left behind",
      }),
    );
  void client.closed.then(lose);
  client.call("watch", { run_id: runId, ...wants }).catch((error: unknown) => {
    if (!(error instanceof RunnerError)) return;
    if (error.code === "supervisor-unreachable") lose();
    else end(error);
  });

  async function* messages(): AsyncIterableIterator<RunMessage> {
    for (;;) {
      const next = queue.shift();
      if (next) yield next;
      else if (ended) break;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
    if (lost) throw lost;
  }

  return {
    runId,
    messages,
    outcome: settled,
    async cancel(taskId) {
      await client.call("cancel", { run_id: runId, task_id: taskId ?? null });
    },
    detach() {
      ended = true;
      client.close();
      wake();
    },
  };
}
