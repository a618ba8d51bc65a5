/** A token bucket: refills steadily up to `burst`, each call takes some. Holds no timer; the caller brings the time. */
export interface RateBucket {
  /** Takes `amount` and answers 0, or takes nothing and answers in how many milliseconds there would be enough. */
  take(amount: number, nowMs: number): number;
}

/** Many small refills add up to a little less than they should. */
const ROUNDING = 1e-6;

/** Makes a full bucket. An amount over `burst` waits for a full bucket instead of for ever. */
export function createRateBucket(perSecond: number, burst: number): RateBucket {
  let tokens = burst;
  let filledMs: number | undefined;
  return {
    take(amount, nowMs) {
      // A clock that steps back must not take tokens away.
      const elapsedMs = Math.max(0, nowMs - (filledMs ?? nowMs));
      tokens = Math.min(burst, tokens + (elapsedMs * perSecond) / 1000);
      filledMs = nowMs;
      const wanted = Math.min(amount, burst);
      if (tokens + ROUNDING >= wanted) {
        tokens -= wanted;
        return 0;
      }
      return Math.max(1, Math.ceil(((wanted - tokens - ROUNDING) * 1000) / perSecond));
    },
  };
}
