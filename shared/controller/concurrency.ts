/** Runs `work` on each item, at most `limit` at a time; the results keep the items' order. The first error ends it. */
export async function mapLimited<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results = new Array<R>(items.length);
  const rest = items.entries();
  let isOver = false;
  const worker = async () => {
    for (const [index, item] of rest) {
      if (isOver) return;
      try {
        results[index] = await work(item);
      } catch (error) {
        isOver = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}
