/**
 * What goes on behind an anchor: small machines that read on from it and say where a secret lies. Each reads a byte once and looks
 * at what it has read at most once more, within `MAX_UNDECIDED_BYTES`: time is linear whatever comes.
 */

/** A stretch of the stream that is secret. `end` grows while more of it comes. */
export interface SecretSpan {
  readonly start: number;
  end: number;
  readonly rule: string;
  readonly number: number;
}

/** A rule by name and number; the number decides between two that find the same. */
export interface ShapeName {
  readonly rule: string;
  readonly number: number;
}

/** What a machine may ask of the stream it reads. Offsets count from the stream's beginning. */
export interface MatchContext {
  found(start: number, end: number, shape: ShapeName): SecretSpan;
  /** Bytes from `start` to `end`, one character each: from the hold on, or a few before it (`LOOK_BACK_BYTES`). */
  text(start: number, end: number): string;
  /** The byte at an offset within the same bounds; 0 before the stream's beginning. */
  byte(at: number): number;
}

export interface ShapeMatcher {
  readonly isActive: boolean;
  /** From here on nothing is certain; Infinity where all is. */
  readonly holdAt: number;
  /** Where it stopped last. An anchor that ends before is part of what it has read already. */
  readonly endedAt: number;
  /** An anchor ended before `at`; it began at `anchorAt`. */
  begin(anchorAt: number, at: number): void;
  /** Reads on from `chunk[from]`, as far as the chunk goes or until it stops. `chunk[0]` is at `base`. */
  read(chunk: Uint8Array, from: number, base: number): void;
  /** The stream ended at `at`. */
  finish(at: number): void;
}

/** What a matcher may hold back before it has to decide. */
export const MAX_UNDECIDED_BYTES = 8192;
/** How far before the hold a matcher may look. */
export const LOOK_BACK_BYTES = 64;

/** 1 for every byte that the character class holds. */
export function byteSet(characters: string): Uint8Array {
  const set = new Uint8Array(256);
  if (characters === "") return set;
  const pattern = new RegExp(`[${characters}]`);
  for (let byte = 0; byte < 128; byte += 1) if (pattern.test(String.fromCharCode(byte))) set[byte] = 1;
  return set;
}

/** What goes on a word. */
export const WORD = byteSet("A-Za-z0-9_");

/** The parts of a matcher that reads byte by byte. */
export interface ByteMachine {
  isActive: boolean;
  holdAt: number;
  begin(anchorAt: number, at: number): void;
  step(byte: number, at: number): void;
  finish(at: number): void;
}

/** Makes a matcher of one. */
export function readBytewise(machine: ByteMachine): ShapeMatcher {
  let endedAt = 0;
  return {
    get isActive() {
      return machine.isActive;
    },
    get holdAt() {
      return machine.holdAt;
    },
    get endedAt() {
      return endedAt;
    },
    begin: machine.begin,
    read(chunk, from, base) {
      for (let i = from; i < chunk.length && machine.isActive; i += 1) {
        endedAt = base + i;
        machine.step(chunk[i] as number, endedAt);
      }
    },
    finish: machine.finish,
  };
}
