/** The target of a command: a SidecarSet by its name, or an Advanced StatefulSet as KIND/NAME. */
import { CliError } from "../../terminal/error.ts";

/** An Advanced StatefulSet. */
export interface SetTarget {
  readonly kind: "statefulset";
  readonly name: string;
  /** absent: the namespace of -n, or of the context */
  readonly namespace?: string;
}

export type Target = { readonly kind: "sidecarset"; readonly name: string } | SetTarget;

export const SET_KIND = "statefulset.apps.kruise.io";
/** The argument that takes both kinds of targets. */
export const TARGET_ARGUMENT = {
  name: "<NAME>",
  about: `of the SidecarSet, or ${SET_KIND}/NAME`,
  completion: "set",
} as const;

const ORDERED_SETS = /^(statefulsets?(\.v1(alpha|beta)1)?\.apps\.kruise\.io|asts)$/i;
const BUILT_IN = /^statefulsets?(\.v1)?\.apps$/i;
const AMBIGUOUS = /^(statefulsets?|sts)$/i;
const SIDECARSETS = /^sidecarsets?(\.apps\.kruise\.io)?$/i;
const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/**
 * Text without a kind is the name of a SidecarSet.
 * @throws CliError for another kind, and for a text that names two
 */
export function targetOf(text: string): Target {
  const [kind = "", ...rest] = text.split("/");
  if (rest.length === 0) return { kind: "sidecarset", name: text };
  const [first = "", second] = rest;
  if (SIDECARSETS.test(kind) && rest.length === 1 && first) return { kind: "sidecarset", name: first };
  if (!ORDERED_SETS.test(kind)) throw otherKind(text, kind, rest.at(-1) ?? "");
  if (rest.length > 2 || !rest.every((one) => NAME.test(one)))
    throw new CliError(`${text}: write ${SET_KIND}/NAME, or ${SET_KIND}/NAMESPACE/NAME`);
  return { kind: "statefulset", name: second ?? first, ...(second === undefined ? {} : { namespace: first }) };
}

function otherKind(text: string, kind: string, name: string): CliError {
  if (AMBIGUOUS.test(kind))
    return new CliError(
      `${text} may be one of two kinds: write ${SET_KIND}/${name}; a StatefulSet of apps/v1 is run by its own controller, and kubectl rollout is for it`,
    );
  if (BUILT_IN.test(kind))
    return new CliError(
      `${text}: StatefulSets of apps/v1 are run by their own controller; kubectl rollout is for them, this command for ${SET_KIND}/NAME`,
    );
  return new CliError(`${text}: write the name of a SidecarSet, or ${SET_KIND}/NAME for an ordered set`);
}
