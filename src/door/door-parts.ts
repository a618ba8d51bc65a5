import type { Socket } from "node:net";
import type { DoorHandlers, DoorLimits } from "./door.ts";
import type { HeldBytes } from "./held-bytes.ts";
import type { TurnBudget } from "./turn-budget.ts";

/** What the connections of one door share. */
export interface DoorParts {
  readonly limits: DoorLimits;
  readonly handlers: DoorHandlers;
  readonly turn: TurnBudget;
  readonly held: HeldBytes;
}

/** A connection as the listener sees it, whatever it speaks. */
export interface OpenConnection {
  /** Takes nothing new, finishes what is in work, then closes. */
  finish(): void;
}

/**
 * What to hand to the frame handler for bytes that are not UTF-8: no JSON text, so the handler answers, counts and logs it as the
 * parse error it is.
 */
export const NOT_UTF8_FRAME = "\u{FFFD}";

/** Aborted when the socket is closed; made on first use, as most connections never ask. */
export function createClosedSignal(socket: Socket): () => AbortSignal {
  let controller: AbortController | undefined;
  socket.once("close", () => controller?.abort());
  return () => {
    if (!controller) {
      controller = new AbortController();
      if (socket.destroyed) controller.abort();
    }
    return controller.signal;
  };
}
