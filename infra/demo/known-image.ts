/** Which images the demo's registry has: a rollout of any other fails. */

interface Image {
  readonly repository: string;
  /** the tag, with # for each number */
  readonly form: string;
}

function parse(image: string): Image {
  const colon = image.indexOf(":", image.lastIndexOf("/") + 1);
  const tag = colon === -1 ? "" : image.slice(colon + 1);
  return { repository: colon === -1 ? image : image.slice(0, colon), form: tagForm(tag) };
}

/** "4.1.0" → "#.#.#"; what `nextImage` adds to a tag without a number changes nothing. */
function tagForm(tag: string): string {
  return tag.replace(/\d+/g, "#").replace(/(-next|^next)+$/, "");
}

/**
 * Of a repository in the manifests, the tags that look like one there: 4.2.0 where 4.1.0 is used. Of any other, each
 * digest, and each tag that is "latest" or has a number.
 */
export function isKnownImage(image: string, manifests: readonly string[]): boolean {
  if (image.includes("@")) return true;
  const { repository, form } = parse(image);
  const own = manifests.map(parse).filter((one) => one.repository === repository);
  if (own.length > 0) return own.some((one) => one.form === form);
  return form === "" || form === "latest" || form.includes("#");
}
