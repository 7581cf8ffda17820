/** Tells which revisions belong to an owner, their order, and which two record the same. */
import type { ControllerRevision, KubernetesObject } from "../../../api/kubernetes.ts";
import { REVISION_HASH_LABEL } from "../../../api/names.ts";
import { compareUtf8 } from "../../../go/json/go-json.ts";
import { revisionText } from "./recorded-revision.ts";

/** True without a controller, or with the owner as controller. */
export function isOwn({ metadata }: KubernetesObject, owner: KubernetesObject): boolean {
  const controller = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  return controller === undefined || controller.uid === owner.metadata?.uid;
}

/** Oldest first. */
export function compareRevisions(a: ControllerRevision, b: ControllerRevision): number {
  return (
    a.revision - b.revision ||
    compareUtf8(a.metadata?.creationTimestamp ?? "", b.metadata?.creationTimestamp ?? "") ||
    compareUtf8(a.metadata?.name ?? "", b.metadata?.name ?? "")
  );
}

/** Compat: hash labels count only where both happen to be 32-bit numbers, as history.EqualRevision reads them. */
export function isSameRevision(a: ControllerRevision, b: ControllerRevision): boolean {
  const [hashA, hashB] = [numericHash(a), numericHash(b)];
  const isSameHash = hashA === undefined || hashB === undefined || hashA === hashB;
  return isSameHash && revisionText(a.data) === revisionText(b.data);
}

function numericHash({ metadata }: ControllerRevision): number | undefined {
  const label = metadata?.labels?.[REVISION_HASH_LABEL] ?? "";
  const hash = Number(label);
  return /^[+-]?\d+$/.test(label) && hash === (hash | 0) ? hash : undefined;
}
