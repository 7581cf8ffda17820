/** `path-secrets`: the secret of each webhook's path, for tools that register them. */

import { ANNOUNCE_SIDECARSET_PATH } from "../../../shared/api/names.ts";
import { writeYaml } from "../../../shared/kube/yaml.ts";
import { printPathDigests } from "../../../shared/settings/authentication-settings.ts";
import { clusterPath } from "../../../shared/webhook/server/cluster-path.ts";
import { pathDigestsOf, pathSecretOf } from "../../../shared/webhook/server/path-secret.ts";
import * as PATHS from "../../../shared/webhook/server/paths.ts";
import { READY_PATH } from "../../../shared/webhook/server/ready-path.ts";
import { CliError } from "../../terminal/screen.ts";
import type { Command } from "../command.ts";
import { clusterName, readPathSecret, readPathSecrets } from "../manifests.ts";
import type { Session } from "../session.ts";

const ALL = [
  ...Object.values(PATHS).flatMap((path) => (typeof path === "string" ? [path] : [])),
  ANNOUNCE_SIDECARSET_PATH,
];

export const PATH_SECRETS: Command = {
  name: "path-secrets",
  group: "Install it",
  summary: "the secret of each webhook's path, made from the one that is kept",
  details:
    "For Helm, Terraform and kustomize (docs/install.md): they get to know these, and not the one that is kept. With a PATH its secret alone. With --digests what functions know the secrets by, without reading any (docs/deploy.md).",
  arguments: [{ name: "[PATH]", about: "of a webhook, such as /mutate-pod", completion: "none" }],
  options: [
    { flags: "--path-secrets <FILE>", about: "the secret that is kept is its first line" },
    { flags: "--cluster <NAME>", about: "of several that are served at one address (docs/several-clusters.md)" },
    { flags: "--digests", about: "of all secrets in it, for the parameter path-digests of npm run deploy" },
  ],
  outputs: ["yaml", "json"],
  examples: [
    "sidecarset path-secrets --path-secrets path-secrets > values.yaml",
    "sidecarset path-secrets --path-secrets path-secrets /convert",
    "sidecarset path-secrets --path-secrets path-secrets --digests",
  ],
  run: async (input, session) => {
    const file = input.required("path-secrets");
    const [path] = input.arguments;
    const cluster = input.text("cluster");
    const below = cluster === undefined ? "" : clusterPath(clusterName(cluster));
    if (input.isSet("digests")) {
      if (path !== undefined) throw new CliError(`--digests are of all paths: leave ${path} out`);
      const digests = pathDigestsOf(
        await readPathSecrets(file),
        [...ALL, READY_PATH].toSorted().map((one) => below + one),
      );
      const pathDigests = printPathDigests(digests);
      printOf(session, { pathDigests }, `${pathDigests}\n`);
      return 0;
    }
    const secret = await readPathSecret(file);
    if (path !== undefined && !ALL.includes(path))
      throw new CliError(`${path}: no webhook has this path; write one of ${ALL.join(", ")}`);
    const paths = path === undefined ? ALL.toSorted() : [path];
    const pathSecrets = Object.fromEntries(paths.map((one) => [one, pathSecretOf(secret, below + one)]));
    printOf(session, { pathSecrets }, path === undefined ? writeYaml({ pathSecrets }) : `${pathSecrets[path]}\n`);
    return 0;
  },
};

/** Prints `value` as JSON if -o asks for it, or else `plain`. The secrets are the wanted output here. */
function printOf({ output, screen }: Session, value: object, plain: string): void {
  screen.text(output === "json" ? `${JSON.stringify(value, null, 2)}\n` : plain);
}
