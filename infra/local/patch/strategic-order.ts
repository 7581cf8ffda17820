/** The order of a merged list: the patch's $setElementOrder first, server-only items where the server had them. */
import { isEqual, isObject } from "../storage/json.ts";

function identity(item: unknown, mergeKey: string): unknown {
  return isObject(item) ? item[mergeKey] : item;
}

/** `order` lists merge keys (as objects) or values; `server` is the list before the patch. */
export function inElementOrder(
  merged: readonly unknown[],
  order: readonly unknown[],
  server: readonly unknown[],
  mergeKey: string,
): unknown[] {
  const rank = (list: readonly unknown[], item: unknown): number =>
    list.findIndex((other) => isEqual(identity(other, mergeKey), identity(item, mergeKey)));
  const ordered = merged
    .filter((item) => rank(order, item) >= 0)
    .sort((left, right) => rank(order, left) - rank(order, right));
  const serverOnly = merged.filter((item) => rank(order, item) < 0);
  const result: unknown[] = [];
  for (const item of ordered) {
    const position = rank(server, item);
    while (serverOnly.length > 0 && position >= 0 && rank(server, serverOnly[0]) < position) {
      result.push(serverOnly.shift());
    }
    result.push(item);
  }
  return [...result, ...serverOnly];
}
