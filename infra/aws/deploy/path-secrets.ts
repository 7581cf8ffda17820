/** The secret that callers prove themselves by: made here, kept in SSM, on no command line. */
import { randomBytes } from "node:crypto";
import { ANNOUNCE_SIDECARSET_PATH } from "../../../shared/api/names.ts";
import { hideSecret } from "../../../shared/log.ts";
import { printPathDigests } from "../../../shared/settings/path-digests.ts";
import { pathDigestsOf } from "../../../shared/webhook/server/path-secret.ts";
import { READY_PATH } from "../../../shared/webhook/server/ready-path.ts";
import { DEPLOYED } from "../deployed.ts";
import { DeployError, type Deployment } from "./deployment.ts";
import { SERVICE } from "./parameters.ts";

const SECRET = /^[A-Za-z0-9_-]{43}$/;
const BYTES = 32;

/** The name in SSM, which functions without digests read too. */
export function secretName(stage: string): string {
  return `/${SERVICE}/${stage}/path-secrets`;
}

/** The secrets, one a line. @throws DeployError */
export function parseSecrets(where: string, text: string): readonly string[] {
  const secrets = text.split(/\r?\n/).flatMap((line) => line.trim() || []);
  for (const secret of secrets) hideSecret(secret);
  if (secrets.length >= 1 && secrets.length <= 2 && secrets.every((secret) => SECRET.test(secret))) return secrets;
  throw new DeployError(
    `${where} does not hold one secret of 43 characters, or a new and an old one on two lines: delete it to have one made (docs/authentication.md).`,
  );
}

/** Digests by which the functions know callers. Before there are secrets, made-up ones of the same length are used. */
export function digestsOf(secrets: readonly string[]): string {
  const paths = [...DEPLOYED.flatMap(({ paths: own = [] }) => own), ANNOUNCE_SIDECARSET_PATH, READY_PATH];
  return printPathDigests(pathDigestsOf(secrets.length === 0 ? [made()] : secrets, [...new Set(paths)].toSorted()));
}

function made(): string {
  const secret = randomBytes(BYTES).toString("base64url");
  hideSecret(secret);
  return secret;
}

/** The valid secrets; the first one is registered. */
export async function ensureSecrets({ aws, options, secrets, changes }: Deployment): Promise<readonly string[]> {
  const name = secretName(options.stage);
  if (secrets.length > 0) {
    changes.said(`${name} is there`);
    return secrets;
  }
  const secret = made();
  const isNew = await changes.make(`put 256 random bits into SSM, ${name} (SecureString)`, () =>
    aws.putSecret(name, secret),
  );
  if (isNew === undefined || isNew) {
    if (isNew) changes.said(`${name} made: 256 random bits, kept in SSM alone`);
    return [secret];
  }
  // Made by another run since we looked.
  return parseSecrets(`the parameter ${name} in SSM`, (await aws.getParameter(name)) ?? "");
}
