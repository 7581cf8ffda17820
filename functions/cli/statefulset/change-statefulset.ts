/** A change to an Advanced StatefulSet that lands only if nobody else changed it since it was read. */
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { changePatch } from "../../../shared/controller/statefulset/act.ts";
import { type Cluster, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import type { Input } from "../command.ts";
import { storeChange } from "../input/change-set.ts";
import type { Session } from "../session.ts";

export interface StatefulSetChange {
  readonly before: StatefulSet;
  readonly after: StatefulSet;
  /** what was done, as in "db: paused" */
  readonly text: string;
  /** what to know about it, one sentence each */
  readonly notes?: readonly string[];
}

/** With --dry-run the API server checks it, webhooks included, and stores nothing. */
export async function changeStatefulSet(
  input: Input,
  session: Session,
  cluster: Cluster,
  { before, after, ...change }: StatefulSetChange,
): Promise<void> {
  const { namespace = "", name = "" } = before.metadata ?? {};
  await storeChange(input, session, {
    title: `StatefulSet ${namespace}/${name}`,
    subject: { namespace, statefulSet: name },
    name,
    change,
    before,
    read: () => cluster.get<StatefulSet>(STATEFUL_SETS, { namespace, name }),
    store: (resourceVersion, options) => {
      const rested = { ...before, metadata: { ...before.metadata, resourceVersion } } as StatefulSet;
      return cluster.patch(STATEFUL_SETS, { namespace, name }, changePatch(rested, after), options);
    },
  });
}
