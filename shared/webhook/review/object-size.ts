/** Tells which objects are too complex to decide on: the author of one must not be able to keep the webhook busy. */

/** A thousand containers with what they usually have; etcd takes no object that is much larger. */
const MAX_VALUES = 20_000;
const MAX_DEPTH = 100;
/** Limit of one text: Kubernetes allows all annotations of an object as much, and no container starts with a longer one. */
const MAX_TEXT = 256 * 1024;

type Fields = Readonly<Record<string, unknown>>;

/** Counts down the remaining values; holds the first problem, and facts found on the way. */
interface Rest {
  values: number;
  problem: string | undefined;
  hasLongNumber: boolean;
}

/** The depth of a review above any metadata, so that nothing in it is left out. */
const REVIEW_DEPTH = 3;

/**
 * One sentence when the object has too many values, too long a text, or too deep a nesting. It reads no further.
 * metadata.managedFields does not count, because the API server writes it and no decision reads it.
 */
export function sizeProblem(object: unknown): string | undefined {
  return measure(object, 1).problem;
}

/** True for nearly every review: it is simple enough as a whole, and `JSON.parse` has lost no digit of its numbers. */
export function isPlainReview(review: unknown): boolean {
  const { problem, hasLongNumber } = measure(review, REVIEW_DEPTH);
  return problem === undefined && !hasLongNumber;
}

function measure(value: unknown, depth: number): Rest {
  const rest: Rest = { values: MAX_VALUES, problem: undefined, hasLongNumber: false };
  measureAt(value, depth, rest);
  return rest;
}

function measureAt(value: unknown, depth: number, rest: Rest): void {
  if (--rest.values < 0) rest.problem = `the object has more than ${MAX_VALUES} values`;
  else if (typeof value === "string") {
    if (value.length > MAX_TEXT) rest.problem = `the object has a text of more than ${MAX_TEXT} characters`;
  } else if (typeof value === "object" && value !== null) measureInside(value, depth, rest);
  else if (typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER) rest.hasLongNumber = true;
}

function measureInside(value: object, depth: number, rest: Rest): void {
  if (depth > MAX_DEPTH) rest.problem = `the object nests deeper than ${MAX_DEPTH} levels`;
  else if (Array.isArray(value)) measureItems(value, depth, rest);
  else measureFields(value as Fields, depth, rest);
}

function measureItems(items: readonly unknown[], depth: number, rest: Rest): void {
  for (let index = 0; index < items.length && rest.problem === undefined; index++)
    measureAt(items[index], depth + 1, rest);
}

/** metadata is at the second level of an object. */
function measureFields(fields: Fields, depth: number, rest: Rest): void {
  for (const key in fields) {
    if (rest.problem !== undefined) return;
    if (depth !== 2 || key !== "managedFields") measureAt(fields[key], depth + 1, rest);
  }
}
