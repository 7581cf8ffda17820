/** Tells whether Kubernetes would accept volumes made of the node's disk or of the cluster's objects. */
import type {
  ClusterTrustBundleProjection,
  DownwardFile,
  KeyToPath,
  PodCertificateProjection,
  VolumeProjection,
  VolumeSources,
} from "../../../api/pod-parts.ts";
import {
  type FieldError,
  forbidden,
  invalid,
  invalidEach,
  notSupported,
  quote,
  required,
  tooLong,
} from "../../../go/field-error.ts";
import { byteLength, dnsLabelErrors, dnsSubdomainErrors } from "../../../go/label-name.ts";
import { fieldQuantity } from "../../../go/quantity/quantity.ts";
import { numberOf } from "../../admission/integer.ts";
import { validateLabelSelector } from "../../admission/selector.ts";
import { validateFieldReference, validateResourceReference } from "./field-reference.ts";
import { validateDescendingPath, validateNoBacksteps, validateNonReservedPath, validatePullPolicy } from "./handler.ts";

type Source<Name extends keyof VolumeSources> = NonNullable<VolumeSources[Name]>;

const HOST_PATH_TYPES = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
];
const DOWNWARD_FIELDS = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
];
const SHORTEST_TOKEN = 600;
const LONGEST_TOKEN = 2 ** 32;

export function validateEmptyDir({ sizeLimit }: Source<"emptyDir">, field: string): readonly FieldError[] {
  const isNegative = sizeLimit != null && (fieldQuantity(sizeLimit)?.unscaled ?? 0n) < 0n;
  return isNegative ? [forbidden(`${field}.sizeLimit`, "SizeLimit field must be a valid resource quantity")] : [];
}

export function validateHostPath({ path = "", type }: Source<"hostPath">, field: string): readonly FieldError[] {
  if (path === "") return [required(`${field}.path`)];
  const isKnown = type == null || HOST_PATH_TYPES.includes(type);
  return [
    ...validateNoBacksteps(path, `${field}.path`),
    ...(isKnown ? [] : [notSupported(`${field}.type`, type, HOST_PATH_TYPES)]),
  ];
}

export function validateGitRepo(source: Source<"gitRepo">, field: string): readonly FieldError[] {
  return [
    ...requireMembers(source, ["repository"], field),
    ...validateDescendingPath(source.directory ?? "", `${field}.directory`),
  ];
}

function validateKeyToPath(item: KeyToPath, field: string): readonly FieldError[] {
  return [
    ...requireMembers(item, ["key", "path"], field),
    ...validateNonReservedPath(item.path ?? "", `${field}.path`),
    ...validateMode(item.mode, `${field}.mode`),
  ];
}

function validateItems(items: readonly KeyToPath[] | undefined, field: string): readonly FieldError[] {
  return (items ?? []).flatMap((item, index) => validateKeyToPath(item, `${field}.items[${index}]`));
}

export function validateSecret(source: Source<"secret">, field: string): readonly FieldError[] {
  return [
    ...requireMembers(source, ["secretName"], field),
    ...validateMode(source.defaultMode, `${field}.defaultMode`),
    ...validateItems(source.items, field),
  ];
}

export function validateConfigMap(source: Source<"configMap">, field: string): readonly FieldError[] {
  return [
    ...requireMembers(source, ["name"], field),
    ...validateMode(source.defaultMode, `${field}.defaultMode`),
    ...validateItems(source.items, field),
  ];
}

function validateDownwardContent({ fieldRef, resourceFieldRef }: DownwardFile, field: string): readonly FieldError[] {
  if (fieldRef == null) {
    return resourceFieldRef == null
      ? [required(field, "one of fieldRef and resourceFieldRef is required")]
      : validateResourceReference(resourceFieldRef, `${field}.resourceFieldRef`, true);
  }
  const detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
  return [
    ...validateFieldReference(fieldRef, `${field}.fieldRef`, DOWNWARD_FIELDS),
    ...(resourceFieldRef == null ? [] : [invalid(field, "resource", detail)]),
  ];
}

/** Validates a file. `field`: path of the list's owner, because the reference does not name the file. */
function validateDownwardFile(file: DownwardFile, field: string): readonly FieldError[] {
  return [
    ...requireMembers(file, ["path"], field),
    ...validateNonReservedPath(file.path ?? "", `${field}.path`),
    ...validateDownwardContent(file, field),
    ...validateMode(file.mode, `${field}.mode`),
  ];
}

export function validateDownwardApi(source: Source<"downwardAPI">, field: string): readonly FieldError[] {
  return [
    ...validateMode(source.defaultMode, `${field}.defaultMode`),
    ...(source.items ?? []).flatMap((file) => validateDownwardFile(file, field)),
  ];
}

function validateToken(
  token: NonNullable<VolumeProjection["serviceAccountToken"]>,
  field: string,
  volumeField: string,
): readonly FieldError[] {
  const { path = "", expirationSeconds } = token;
  const seconds = numberOf(expirationSeconds);
  const member = `${field}.expirationSeconds`;
  const isLong = seconds > LONGEST_TOKEN;
  return [
    ...(seconds < SHORTEST_TOKEN
      ? [invalid(member, expirationSeconds ?? 0, "may not specify a duration less than 10 minutes")]
      : []),
    ...(isLong ? [invalid(member, expirationSeconds, "may not specify a duration larger than 2^32 seconds")] : []),
    ...(path === "" ? [required(`${volumeField}.path`)] : validateNonReservedPath(path, `${volumeField}.path`)),
  ];
}

/** Paths that two sources of one volume would both write. */
class ProjectedPaths {
  private readonly seen = new Set<string>();
  private readonly field: string;

  constructor(field: string) {
    this.field = field;
  }

  add(path: string, badValue: string): readonly FieldError[] {
    if (this.seen.has(path)) return [invalid(this.field, badValue, "conflicting duplicate paths")];
    this.seen.add(path);
    return [];
  }
}

function validateObjectSource(
  source: NonNullable<VolumeProjection["secret"]>,
  field: string,
  paths: ProjectedPaths,
): readonly FieldError[] {
  const { name = "", items = [] } = source;
  return [
    ...(name === "" ? [required(`${field}.name`)] : []),
    ...validateItems(items, field),
    ...items.flatMap(({ path = "" }) => (path === "" ? [] : paths.add(path, name))),
  ];
}

function validateDownwardSource(
  files: readonly DownwardFile[],
  field: string,
  paths: ProjectedPaths,
): readonly FieldError[] {
  return files.flatMap((file) => {
    const { path = "" } = file;
    return [...validateDownwardFile(file, field), ...(path === "" ? [] : paths.add(path, path))];
  });
}

function validateProjection(
  source: VolumeProjection,
  field: string,
  volumeField: string,
  paths: ProjectedPaths,
): readonly FieldError[] {
  const { secret, configMap, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate } = source;
  const kinds = [secret, configMap, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate];
  const bundlePath = clusterTrustBundle?.path ?? "";
  return [
    ...(secret == null ? [] : validateObjectSource(secret, `${field}.secret`, paths)),
    ...(configMap == null ? [] : validateObjectSource(configMap, `${field}.configMap`, paths)),
    ...validateDownwardSource(downwardAPI?.items ?? [], `${field}.downwardAPI`, paths),
    ...(serviceAccountToken == null
      ? []
      : validateToken(serviceAccountToken, `${field}.serviceAccountToken`, volumeField)),
    ...(clusterTrustBundle == null
      ? []
      : [
          ...validateTrustBundle(clusterTrustBundle, `${field}.clusterTrustBundle`),
          ...paths.add(bundlePath, bundlePath),
        ]),
    ...(podCertificate == null
      ? []
      : [
          ...validatePodCertificate(podCertificate, `${field}.podCertificate`),
          ...certificatePaths(podCertificate).flatMap((path) => paths.add(path, path)),
        ]),
    ...(kinds.filter((kind) => kind != null).length > 1
      ? [forbidden(field, "may not specify more than 1 volume type per source")]
      : []),
  ];
}

export function validateProjected(source: Source<"projected">, field: string): readonly FieldError[] {
  const paths = new ProjectedPaths(field);
  return [
    ...validateMode(source.defaultMode, `${field}.defaultMode`),
    ...(source.sources ?? []).flatMap((projection, index) =>
      validateProjection(projection, `${field}.sources[${index}]`, field, paths),
    ),
  ];
}

/** Validates an image volume. Only a pod needs the reference; a template may leave it out. */
export function validateImage(source: Source<"image">, field: string): readonly FieldError[] {
  return validatePullPolicy(source.pullPolicy ?? "", `${field}.pullPolicy`);
}

// Tells whether a pod's certificate may be projected into a volume. Source: Kubernetes 1.36 validation.

const KEY_TYPES = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const PATHS = ["credentialBundlePath", "keyPath", "certificateChainPath"] as const;
const SHORTEST_SECONDS = 3600;

function validatePodCertificate(source: PodCertificateProjection, field: string): readonly FieldError[] {
  const { signerName = "", keyType = "", maxExpirationSeconds } = source;
  const paths = certificatePaths(source);
  return [
    ...(signerName === "" ? [required(`${field}.signerName`)] : []),
    ...(KEY_TYPES.includes(keyType) ? [] : [notSupported(`${field}.keyType`, keyType, KEY_TYPES)]),
    ...(maxExpirationSeconds !== undefined && maxExpirationSeconds < SHORTEST_SECONDS
      ? [
          invalid(
            `${field}.maxExpirationSeconds`,
            maxExpirationSeconds,
            `if provided, maxExpirationSeconds must be >= ${SHORTEST_SECONDS}`,
          ),
        ]
      : []),
    ...PATHS.flatMap((name) => (source[name] ? validateNonReservedPath(source[name], `${field}.${name}`) : [])),
    ...(paths.length === 0
      ? [required(field, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")]
      : []),
  ];
}

/** Paths that the certificate writes in its volume. */
function certificatePaths(source: PodCertificateProjection): readonly string[] {
  return PATHS.flatMap((name) => source[name] || []);
}

/** Tells whether Kubernetes would accept a projection of a ClusterTrustBundle. */
const DOMAIN_LIMIT = 253;
const SIGNER_LIMIT = 571;

/**
 * Errors of a bundle's name. The signer of `example.com:signer:name` is `example.com/signer`; without a colon: none.
 */
function bundleNameErrors(name: string): readonly string[] {
  const end = name.lastIndexOf(":");
  if (end === -1) return dnsSubdomainErrors(name);
  const signer = name.slice(0, end).replaceAll(":", "/");
  if (signer === "") return ['ClusterTrustBundle without signer name must not have ":" in its name'];
  const prefix = `${signer.replaceAll("/", ":")}:`;
  if (!name.startsWith(prefix)) {
    return [`ClusterTrustBundle for signerName ${signer} must be named with prefix ${prefix}`];
  }
  return dnsSubdomainErrors(name.slice(end + 1));
}

function firstLabelErrors(part: string, errorsOf: (label: string) => readonly string[]): readonly string[] {
  for (const label of part.split(".")) {
    const errors = errorsOf(label);
    if (errors.length > 0) return errors.map((error) => `validating label ${quote(label)}: ${error}`);
  }
  return [];
}

function validateSigner(signer: string, field: string): readonly FieldError[] {
  if (signer === "") return [required(field, "must be a valid signer name"), required(field)];
  const [domain = "", path, tooMany] = signer.split("/");
  if (path === undefined || tooMany !== undefined) {
    return [invalid(field, signer, "must be a fully qualified domain and path of the form 'example.com/signer-name'")];
  }
  const isShort = !domain.includes(".");
  return [
    ...(byteLength(domain) > DOMAIN_LIMIT ? [tooLong(field, DOMAIN_LIMIT)] : []),
    ...invalidEach(field, domain, firstLabelErrors(domain, dnsLabelErrors)),
    ...(isShort ? [invalid(field, domain, "should be a domain with at least two segments separated by dots")] : []),
    ...invalidEach(field, path, firstLabelErrors(path, dnsSubdomainErrors)),
    ...(byteLength(signer) > SIGNER_LIMIT ? [tooLong(field, SIGNER_LIMIT)] : []),
  ];
}

function validateNamed(bundle: ClusterTrustBundleProjection, name: string, field: string): readonly FieldError[] {
  const details = bundleNameErrors(name).map((error) => `not a valid clustertrustbundlename: ${error}`);
  const selected =
    bundle.labelSelector == null
      ? []
      : [invalid(`${field}.labelSelector`, bundle.labelSelector, "labelSelector must be unset if name is specified")];
  return [
    ...(name === "" ? [required(`${field}.name`, "must be a valid object name")] : []),
    ...invalidEach(`${field}.name`, name, details),
    ...selected,
  ];
}

function validateChoice(bundle: ClusterTrustBundleProjection, field: string): readonly FieldError[] {
  const { name, signerName, labelSelector } = bundle;
  if (name != null && signerName != null) {
    return [invalid(field, bundle, "only one of name and signerName may be used")];
  }
  if (name != null) return validateNamed(bundle, name, field);
  if (signerName == null) return [required(field, "either name or signerName must be specified")];
  return [
    ...validateSigner(signerName, `${field}.signerName`),
    ...validateLabelSelector(labelSelector, `${field}.labelSelector`),
  ];
}

function validateTrustBundle(bundle: ClusterTrustBundleProjection, field: string): readonly FieldError[] {
  const { path = "" } = bundle;
  return [
    ...validateChoice(bundle, field),
    ...(path === "" ? [required(`${field}.path`)] : []),
    ...validateNonReservedPath(path, `${field}.path`),
  ];
}

/** Checks single members of a volume source. */
const HIGHEST_MODE = 0o777;

/** Requires members that are present and not empty. */
export function requireMembers<T extends object>(
  source: T,
  members: readonly (keyof T & string)[],
  field: string,
): readonly FieldError[] {
  return members.flatMap((member) => {
    const value = source[member] as unknown as string | readonly unknown[] | null | undefined;
    return value?.length ? [] : [required(`${field}.${member}`)];
  });
}

/** Validates a partition. 0 means the whole disk, although the reference's message does not say so. */
export function validatePartition(partition: number | undefined, field: string): readonly FieldError[] {
  const number = numberOf(partition);
  const detail = "must be between 1 and 255, inclusive";
  return number < 0 || number > 255 ? [invalid(`${field}.partition`, partition, detail)] : [];
}

function validateMode(mode: number | undefined, field: string): readonly FieldError[] {
  const isMode = mode == null || (numberOf(mode) >= 0 && numberOf(mode) <= HIGHEST_MODE);
  return isMode ? [] : [invalid(field, mode, "must be a number between 0 and 0777 (octal), both inclusive")];
}
