/** Tells which of two resourceVersions is later. */

/** resourceVersions are decimal numbers of any length. Source: Kubernetes API concepts, "Resource versions". */
export function isLater(version: string | undefined, than: string): boolean {
  if (version === undefined) return false;
  return version.length === than.length ? version > than : version.length > than.length;
}
