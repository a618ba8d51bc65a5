/**
 * Shares one turn of the event loop between the connections of a door, so that a peer that pipelines thousands of frames holds
 * up everybody else (other connections, other doors, timers) for a fraction of a millisecond only.
 */
export interface TurnBudget {
  /** Takes `share` units (1) of this turn's work; false where the turn is used up. */
  tryTake(share?: number): boolean;
  /** Runs `resume` in a later turn, in the order asked. */
  whenFree(resume: () => void): void;
}

/** Makes a budget of `perTurn` frames. */
export function createTurnBudget(perTurn: number): TurnBudget {
  let left = perTurn;
  let isScheduled = false;
  const waiting: Array<() => void> = [];

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      left = perTurn;
      // Who uses up the turn goes to the end of the queue, so the others come first next time.
      while (left > 0) {
        const resume = waiting.shift();
        if (!resume) break;
        resume();
      }
      if (waiting.length > 0) schedule();
    });
  }

  return {
    tryTake(share = 1) {
      if (left <= 0) return false;
      left -= share;
      schedule();
      return true;
    },
    whenFree(resume) {
      waiting.push(resume);
      schedule();
    },
  };
}
