/** What the pod template of a revision says, in a line. */
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { restoreTemplate } from "../../../shared/core/statefulset/revisions.ts";

const NOTHING: StatefulSet = { spec: {} };

/** `db=postgres:18, agent=agent:2` */
export function templateImages(revision: ControllerRevision): string {
  const { spec } = restoreTemplate(NOTHING, revision).spec.template ?? {};
  return (spec?.containers ?? []).map(({ name, image }) => `${name}=${image}`).join(", ");
}
