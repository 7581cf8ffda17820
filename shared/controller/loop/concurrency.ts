/**
 * Runs `work` on each item, at most `limit` at a time; the results keep the items' order. The first error ends it, once
 * what is under way has ended, too: `isOver` tells that nobody needs its result any more.
 */
export function mapLimited<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T, isOver: () => boolean) => Promise<R>,
): Promise<readonly R[]> {
  const results = new Array<R>(items.length);
  const rest = items.entries();
  const errors: unknown[] = [];
  const isOver = () => errors.length > 0;
  const worker = async () => {
    for (const [index, item] of rest) {
      if (isOver()) return;
      try {
        results[index] = await work(item, isOver);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  const workers = Array.from({ length: Math.min(limit, items.length) }, worker);
  return Promise.all(workers).then(() => {
    if (isOver()) throw errors[0];
    return results;
  });
}
