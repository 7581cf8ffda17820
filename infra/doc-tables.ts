/** The parts of pages that tables of the code have: holds in docs/reasons.md, annotations of SidecarSets in docs/annotations.md. */
import * as NAMES from "../shared/api/names.ts";
import type { SteeringAnnotation } from "../shared/core/pod/steering/annotations.ts";
import { CAUSES } from "../shared/core/rollout/hold.ts";

const TITLE = "## What holds a rollout";

/** `page`: docs/reasons.md; its other parts stay. @throws Error when the page has no such part */
export function withHolds(page: string): string {
  const [before, rest] = page.split(`${TITLE}\n`);
  if (before === undefined || rest === undefined) throw new Error(`docs/reasons.md has no heading "${TITLE}"`);
  return `${before}${part()}${rest.slice(rest.indexOf("\n## "))}`;
}

function part(): string {
  const causes = Object.entries(CAUSES).map(([cause, meaning]) => `### ${cause}\n\n${meaning}`);
  return `${[TITLE, "`node infra/generate.ts` writes this part.", ...causes].join("\n\n")}\n`;
}

interface Documented {
  readonly value: string;
  readonly does: string;
  /** absent: the name alone */
  readonly key?: string;
}

/** Texts of the docs about each annotation of a SidecarSet. elsewhere: another table of the page has it. */
const DOCUMENTED: Readonly<Record<SteeringAnnotation, Documented | "elsewhere">> = {
  [NAMES.HALT_ON_ANNOTATION]: {
    value: "`3`, `10%`, `10% within 5m`",
    does: "[stops a rollout](halt.md) when more updated pods fail",
  },
  [NAMES.UNDO_ON_HALT_ANNOTATION]: {
    value: "`true`",
    does: "[takes the release back](halt.md#have-it-taken-back) when `halt-on` stops it",
  },
  [NAMES.GATE_ANNOTATION]: {
    value: "a URL",
    does: "is [asked before each batch](gates.md)",
  },
  [NAMES.METRICS_ANNOTATION]: {
    value: "a JSON list of checks",
    does: "[queries to Prometheus](metric-checks.md) before each batch",
  },
  [NAMES.OWNER_BUDGET_ANNOTATION]: {
    value: "`1`, `25%`",
    does: "[a budget for each owner](budgets.md#give-each-owner-a-budget) besides `maxUnavailable`",
  },
  [NAMES.WAVES_ANNOTATION]: {
    value: "a list in JSON",
    does: "updates [namespaces in an order](waves.md)",
  },
  [NAMES.SKIP_WAVES_ANNOTATION]: {
    value: "the hash of a release",
    does: "this release [waits for no wave](waves.md#the-way-back)",
  },
  [NAMES.IGNORE_NEVER_READY_ANNOTATION]: {
    value: "`true`",
    does: "leaves [pods that were never ready](budgets.md#leave-out-pods-that-were-never-ready) out of `maxUnavailable`",
  },
  [NAMES.REPLACE_ANNOTATION]: {
    value: "`NotUpgradable`, `Missed`, `Jobs`, `Restart`, `Restart=N`",
    does: "[replaces pods](replace.md), or with `Restart` [restarts their workloads](replace-restart.md)",
  },
  [NAMES.EVICT_MISSED_ANNOTATION]: {
    value: "`true`",
    does: "evicts [pods that missed their sidecars](missed-pods.md)",
  },
  [NAMES.FOLLOW_ORDINALS_ANNOTATION]: {
    value: "`true`",
    does: "upgrades pods of StatefulSets [in their order](budgets.md#follow-the-order-of-statefulsets)",
  },
  [NAMES.IN_PLACE_ANNOTATION]: {
    value: "`Values`",
    does: "changes [values of variables](values-in-place.md) in pods that run",
  },
  [NAMES.DRAIN_ANNOTATION]: {
    value: "a time, such as `10s`",
    does: "[drains a pod](drain.md) for this time before its sidecars restart",
  },
  [NAMES.PRE_PULL_ANNOTATION]: {
    value: "`10`",
    does: "[pulls new images](pre-pull.md) first, on that many nodes at once",
  },
  [NAMES.CANARY_ANNOTATION]: {
    value: "`true`",
    does: "[takes the place](canary.md#chosen-pods) of that SidecarSet in the pods that it selects",
    key: "`apps.kruise.io/sidecarset-canary`, with `apps.kruise.io/sidecarset-base: NAME`",
  },
  [NAMES.UNDONE_ANNOTATION]: "elsewhere",
  [NAMES.GIVEN_UP_ANNOTATION]: "elsewhere",
  [NAMES.BASE_ANNOTATION]: "elsewhere",
  [NAMES.HASH_ANNOTATION]: "elsewhere",
  [NAMES.HASH_WITHOUT_IMAGE_ANNOTATION]: "elsewhere",
};
const LABEL_ROW =
  "- `apps.kruise.io/sidecarset-custom-version` (label, a name): `injectionStrategy.revision.customVersion` finds this revision by it";

const WRITTEN_HEADING = "## That you write on a SidecarSet";

/** `page`: docs/annotations.md; its other parts stay. @throws Error when the page has no such part */
export function withAnnotations(page: string): string {
  const [before, rest] = page.split(`${WRITTEN_HEADING}\n`);
  if (before === undefined || rest === undefined) throw new Error(`docs/annotations.md has no "${WRITTEN_HEADING}"`);
  const rows = Object.entries(DOCUMENTED).map(([name, told]) =>
    told === "elsewhere" ? "" : `- ${told.key ?? `\`${name}\``} (${told.value}): ${told.does}\n`,
  );
  return `${before}${WRITTEN_HEADING}\n\n${rows.join("")}${LABEL_ROW}\n${rest.slice(rest.indexOf("\n## "))}`;
}
