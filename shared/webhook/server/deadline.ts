/** A bound on how long somebody is kept waiting. */

/** Not there in time. What was begun goes on; nobody waits for it any more. */
class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

/** What `begin` comes to, or a DeadlineError after that many milliseconds. */
export async function within<T>(milliseconds: number, begin: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineError(`there is no decision after ${milliseconds} ms`)), milliseconds);
  });
  try {
    return await Promise.race([begin(), late]);
  } finally {
    clearTimeout(timer);
  }
}
