/** The image that a demonstration rolls out: the same repository with the tag after the present one. */

/** "a/b:4.1.0" → "a/b:4.1.1"; without a number at its end the tag gets "-next"; a digest is left out. */
export function nextImage(image: string): string {
  const [name = ""] = image.split("@");
  const slash = name.lastIndexOf("/");
  const colon = name.indexOf(":", slash + 1);
  const repository = colon === -1 ? name : name.slice(0, colon);
  const tag = colon === -1 ? "" : name.slice(colon + 1);
  const [, front = "", digits = ""] = /^(.*?)(\d+)$/.exec(tag) ?? [];
  if (digits !== "") return `${repository}:${front}${BigInt(digits) + 1n}`;
  return `${repository}:${tag === "" ? "next" : `${tag}-next`}`;
}
