/**
 * Versions of the webhooks, in a template that osls has finished. A version's name is a digest of its parts, so only a
 * change makes another.
 */
import { hash } from "node:crypto";
import { aliasId, CHECKER, functionId, roleId, versionId } from "../names.ts";
import { WEBHOOKS } from "./alias.ts";

interface Resource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
}

export interface CompiledTemplate {
  readonly Resources: Readonly<Record<string, Resource>>;
  readonly Outputs: Readonly<Record<string, { readonly Value: unknown }>>;
}

/** Properties of the function, or ones that change with each deployment: they make no new version. */
const OF_NO_VERSION = ["Code", "ReservedConcurrentExecutions", "Tags"];

/** The template itself where there is no alias. `codeOf`: SHA-256 of a function's zip, in base64. */
export function withVersions(template: CompiledTemplate, codeOf: ReadonlyMap<string, string>): CompiledTemplate {
  const { Resources, Outputs } = template;
  if (WEBHOOKS.every(({ name }) => Resources[aliasId(name)] === undefined)) return template;
  const versions = WEBHOOKS.map(({ name }) => versionOf(name, Resources, codeOf.get(name) ?? ""));
  const refs = versions.map(({ id }) => ({ Ref: id }));
  const pairs = versions.map(({ name, id }) => ({ "Fn::Join": ["=", [name, { Ref: id }]] }));
  return {
    ...template,
    Resources: {
      ...Resources,
      ...Object.fromEntries(versions.map(({ id, resource }) => [id, resource])),
      ...Object.fromEntries(versions.map(({ name, id }) => [aliasId(name), pointing(Resources[aliasId(name)], id)])),
      [functionId(CHECKER)]: knowing(Resources[functionId(CHECKER)], { "Fn::Join": [",", pairs] }),
      [roleId(CHECKER)]: calling(Resources[roleId(CHECKER)], refs),
    },
    Outputs: { ...Outputs, ...urlOutputs(template) },
  };
}

function versionOf(name: string, resources: CompiledTemplate["Resources"], code: string) {
  const properties = Object.entries(resources[functionId(name)]?.Properties ?? {});
  const own = properties.filter(([property]) => !OF_NO_VERSION.includes(property));
  const id = versionId(name, hash("sha256", JSON.stringify([code, sorted(Object.fromEntries(own))]), "hex"));
  const resource = {
    Type: "AWS::Lambda::Version",
    // The earlier version stays until this one has all requests. Then nothing calls it any more, and it is deleted.
    DeletionPolicy: "Delete",
    UpdateReplacePolicy: "Delete",
    Properties: { FunctionName: { Ref: functionId(name) }, CodeSha256: code },
  };
  return { name, id, resource };
}

/** Sorted, because osls may write the same version in another order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted()
      .map(([key, each]) => [key, sorted(each)]),
  );
}

function pointing(alias: Resource | undefined, version: string): Resource {
  const FunctionVersion = { "Fn::GetAtt": [version, "Version"] };
  return { Type: "AWS::Lambda::Alias", ...alias, Properties: { ...alias?.Properties, FunctionVersion } };
}

function knowing(checker: Resource | undefined, VERSIONS: object): Resource {
  const { Variables = {} } = (checker?.Properties["Environment"] ?? {}) as { readonly Variables?: object };
  const Environment = { Variables: { ...Variables, VERSIONS } };
  return { Type: "AWS::Lambda::Function", ...checker, Properties: { ...checker?.Properties, Environment } };
}

/** A policy for each deployment, because the numbers of versions are not known before. */
function calling(role: Resource | undefined, versions: readonly object[]): Resource {
  const Statement = [{ Effect: "Allow", Action: "lambda:InvokeFunction", Resource: versions }];
  const policy = { PolicyName: "versions", PolicyDocument: { Version: "2012-10-17", Statement } };
  const Policies = [...((role?.Properties["Policies"] ?? []) as readonly object[]), policy];
  return { Type: "AWS::IAM::Role", ...role, Properties: { ...role?.Properties, Policies } };
}

/** Outputs that give the address of a webhook's alias. */
function urlOutputs({ Resources, Outputs }: CompiledTemplate): CompiledTemplate["Outputs"] {
  return Object.fromEntries(
    WEBHOOKS.flatMap(({ name }) => {
      const [output, url] = [`${functionId(name)}Url`, `${aliasId(name)}Url`];
      if (Outputs[output] === undefined || Resources[url] === undefined) return [];
      return [[output, { ...Outputs[output], Value: { "Fn::GetAtt": [url, "FunctionUrl"] } }]];
    }),
  );
}
