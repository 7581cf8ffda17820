/**
 * Checks every parameter with the functions' own parsers before anything is begun. osls itself ignores unknown ones.
 */
import { nearest } from "../../../shared/go/edit-distance.ts";
import { ConfigError } from "../../../shared/settings/config-error.ts";
import { checkEnvironment } from "../check-environment.ts";
import { DEPLOYED } from "../deployed.ts";
import { environmentOf } from "../functions.ts";
import { refuseRepeated } from "../read-parameter.ts";
import { type AwsSettings, readSettings } from "../settings.ts";
import { readTags } from "../sizing.ts";
import { template } from "../template.ts";

/** Parameters that serverless.yml reads itself, with its defaults. */
const COMMON = {
  POD_NAMESPACE: ["namespace", "kruise-system"],
  FEATURE_GATES: ["feature-gates", ""],
  LOG_LEVEL: ["log-level", "info"],
} as const;

export const SERVICE = "sidecarset";

/**
 * `parameters`: all of them, with the ones that the deployment finds out. `last`: names of the last deployment, which
 * may be of a newer release.
 * @throws ConfigError for the first that cannot be used
 */
export async function checkParameters(
  parameters: ReadonlyMap<string, string>,
  { stage, region }: { readonly stage: string; readonly region: string },
  last: readonly string[] = [],
): Promise<AwsSettings> {
  const known = new Set<string>();
  const read = async (name: string) => {
    known.add(name);
    return parameters.get(name) ?? "";
  };
  const settings = await readSettings(SERVICE, stage, read);
  await readTags(read);
  for (const [name, text] of parameters) if (text !== "" || !last.includes(name)) checkName(name, known);
  const variables = Object.entries(COMMON).map(([variable, [name, otherwise]]) => [
    variable,
    parameters.get(name) ?? otherwise,
  ]);
  const common = { AWS_REGION: region, ...Object.fromEntries(variables) };
  for (const deployed of DEPLOYED)
    checkEnvironment(deployed, environmentOf(deployed, settings), { common, isDeployed: true });
  template(settings);
  return settings;
}

/** Checks the parameters of an osls command. `known`: names that settings read. @throws ConfigError for the first unknown or repeated one */
export function checkNames(argv: readonly string[], known: ReadonlySet<string>): void {
  const names = argv.flatMap((argument, index) => {
    const given = argument === "--param" ? argv[index + 1] : /^--param=(.*)$/s.exec(argument)?.[1];
    return /^"?([^="]+)/.exec(given ?? "")?.[1] ?? [];
  });
  refuseRepeated(names);
  for (const name of names) checkName(name, known);
}

function checkName(name: string, known: ReadonlySet<string>): void {
  if (known.has(name)) return;
  const near = nearest(name, [...known]);
  throw new ConfigError(
    `--param ${name}: there is no such parameter${near === undefined ? "" : `, perhaps ${near}`}; docs/deploy-parameters.md lists them.`,
  );
}
