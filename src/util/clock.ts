/** Where time comes from, so that tests can hold it. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  nowMs(): number;
}
