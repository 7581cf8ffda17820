/** What a revision of a SidecarSet says, in a line. */
import type { ControllerRevision } from "../../shared/api/kubernetes.ts";

interface Recorded {
  readonly spec?: {
    readonly containers?: readonly { readonly name?: string; readonly image?: string }[] | null;
  };
}

/** `agent=agent:2, mesh=mesh:1` */
export function imagesText({ data }: ControllerRevision): string {
  const containers = (data as Recorded | undefined)?.spec?.containers ?? [];
  return containers.map(({ name, image }) => `${name}=${image}`).join(", ");
}

/** `created 2026-01-02T03:04:05Z` */
export function createdText({ metadata }: ControllerRevision): string {
  return metadata?.creationTimestamp ? `created ${metadata.creationTimestamp}` : "not stored yet";
}
