/** `1,234,567`: the same in every locale, since people compare and search it. */
export function formatCount(count: number): string {
  return String(Math.trunc(count)).replace(/\B(?=(\d{3})+$)/g, ",");
}
