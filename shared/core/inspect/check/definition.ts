/** Faults of the SidecarSet CRD, and of the API server that serves it. */
import { type Definition, type Facts, type SchemaNode, seenOf } from "./facts.ts";
import { type Finding, finding, someOf, where } from "./finding.ts";

const ABOUT = "CRD sidecarsets.apps.kruise.io";
const APPLY = "replace the address in infra/crd/sidecarsets.yaml, and apply it";
/** Oldest minor version with matchConditions of webhooks, and with the structural schemas that the CRD uses. */
const LEAST_MINOR = 28;
/** The Kubernetes versions that the core tests run on: 1.31 to 1.37. */
export const TESTED_MINORS = { oldest: 31, newest: 37 } as const;

export function checkDefinition(facts: Facts): readonly Finding[] {
  const { definition, ownSchema } = facts;
  if ("why" in definition) return checkVersion(facts);
  if (definition.value === undefined)
    return [finding("DefinitionMissing", ABOUT, "the cluster knows no SidecarSets", APPLY), ...checkVersion(facts)];
  return [
    ...checkVersions(definition.value),
    ...checkConversion(definition.value, facts),
    ...checkSchema(definition.value, ownSchema),
    ...checkVersion(facts),
  ];
}

function checkVersions({ spec, status }: Definition): readonly Finding[] {
  const versions = spec?.versions ?? [];
  const unserved = ["v1alpha1", "v1beta1"].filter(
    (name) => !versions.some((version) => version.name === name && version.served),
  );
  const storage = versions.find((version) => version.storage)?.name;
  const isOldStored = (status?.storedVersions ?? []).includes("v1alpha1");
  return [
    ...where(
      unserved.length > 0,
      finding(
        "VersionNotServed",
        ABOUT,
        `${unserved.join(" and ")} is not served, but asked for here or by users`,
        APPLY,
      ),
    ),
    ...where(
      storage !== undefined && storage !== "v1beta1",
      finding(
        "VersionNotStored",
        ABOUT,
        `SidecarSets are stored as ${storage}, so that each read of one is converted`,
        APPLY,
      ),
    ),
    ...where(
      isOldStored && storage === "v1beta1",
      finding(
        "OldVersionStored",
        ABOUT,
        "some SidecarSets may be stored as v1alpha1 still: each read of them needs the conversion webhook",
        "write each once (kubectl get sidecarsets -o yaml | kubectl replace -f -), then take v1alpha1 out of status.storedVersions",
      ),
    ),
  ];
}

function checkConversion({ spec }: Definition, { mutating }: Facts): readonly Finding[] {
  const versions = (spec?.versions ?? []).filter(({ served }) => served);
  const { strategy, webhook } = spec?.conversion ?? {};
  if (strategy !== "Webhook")
    return where(
      versions.length > 1,
      finding(
        "ConversionMissing",
        ABOUT,
        "no conversion webhook: a SidecarSet loses fields when somebody reads it in another version than the stored one",
        APPLY,
      ),
    );
  const service = webhook?.clientConfig?.service;
  const ours = (seenOf(mutating) ?? [])
    .flatMap(({ webhooks = [] }) => webhooks)
    .find(
      ({ name, clientConfig }) =>
        name === "msidecarset.kb.io" && clientConfig?.service?.name !== "kruise-webhook-service",
    );
  const isElsewhere = ours !== undefined && service?.name === "kruise-webhook-service";
  return [
    ...where(
      isElsewhere,
      finding(
        "ConversionElsewhere",
        ABOUT,
        `conversions are asked of OpenKruise (Service ${service?.namespace}/${service?.name}), SidecarSets are served from here`,
        APPLY,
      ),
    ),
    ...where(
      webhook?.clientConfig?.url?.includes(".invalid") === true,
      finding(
        "PlaceholderAddress",
        ABOUT,
        "conversions go to the placeholder of the files in infra, which never answers",
        APPLY,
      ),
    ),
  ];
}

function checkSchema({ spec }: Definition, own: SchemaNode): readonly Finding[] {
  const stored = spec?.versions?.find(({ name }) => name === "v1beta1")?.schema?.openAPIV3Schema;
  const lacking = stored === undefined ? [] : missingFields(stored, own, "");
  return where(
    lacking.length > 0,
    finding(
      "SchemaOld",
      ABOUT,
      `its schema lacks fields that are read or written here, which the API server drops: ${someOf(lacking)}`,
      APPLY,
    ),
  );
}

/** The API server keeps these fields whatever a schema says. */
const OF_EVERY_OBJECT: ReadonlySet<string> = new Set([".apiVersion", ".kind", ".metadata"]);

/** Paths in `own` that the schema `stored` would drop. */
export function missingFields(stored: SchemaNode, own: SchemaNode, path: string): readonly string[] {
  if (stored["x-kubernetes-preserve-unknown-fields"]) return [];
  const ofItems = own.items && stored.items ? missingFields(stored.items, own.items, path) : [];
  const ofFields = Object.entries(own.properties ?? {}).flatMap(([name, node]) => {
    const place = `${path}.${name}`;
    const there = stored.properties?.[name];
    if (there !== undefined) return missingFields(there, node, place);
    // A schema without listed fields drops only what it does not have.
    return stored.properties === undefined || OF_EVERY_OBJECT.has(place) ? [] : [place];
  });
  return [...ofFields, ...ofItems];
}

function checkVersion({ version }: Facts): readonly Finding[] {
  const server = seenOf(version);
  if (server === undefined) return [];
  const minor = Number.parseInt(server.minor, 10);
  const isOld = Number(server.major) < 1 || (server.major === "1" && minor < LEAST_MINOR);
  const { oldest, newest } = TESTED_MINORS;
  const isTested = Number(server.major) === 1 && minor >= oldest && minor <= newest;
  if (!isOld)
    return where(
      !isTested,
      finding(
        "ApiServerUntested",
        `API server ${server.gitVersion}`,
        `it is ${minor < oldest ? `older than 1.${oldest}, the oldest` : `newer than 1.${newest}, the newest`} Kubernetes that this release was tested with`,
        "try injection and one rollout on a test cluster of this version first (docs/limits.md#kubernetes-versions)",
      ),
    );
  return [
    finding(
      "ApiServerOld",
      `API server ${server.gitVersion}`,
      `it is older than 1.${LEAST_MINOR}, and drops the matchConditions of the registration: mirror pods, and pods that no SidecarSet is meant for, are asked about`,
      `update it to 1.${LEAST_MINOR} or later`,
    ),
  ];
}
