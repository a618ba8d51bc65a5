/**
 * A number in [0, 1) that follows from the run's seed, the task and the attempt alone, so that a replay of the log decides the same delays
 * while the tasks of a run, hit by one outage, do not all come back in the same moment. Not for anything that must be unguessable.
 */
export function jitterShare(seed: number, taskId: string, attempt: number): number {
  // FNV-1a over the text, then an avalanche: FNV alone leaves its high bits almost alike for texts that differ in the last character.
  let hash = 0x811c9dc5;
  const text = `${seed}/${taskId}/${attempt}`;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
