/** Webhook configurations: defaults, and what every webhook must say. */

import {
  asList,
  asObject,
  asText,
  childOf,
  isObject,
  type JsonObject,
  objectsIn,
  setDefault,
} from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import { type FieldError, invalid, notSupported, required } from "./field-error.ts";

const VERSIONS = ["v1", "v1beta1"];

function defaultWebhook(webhook: JsonObject, isMutating: boolean): void {
  setDefault(webhook, "failurePolicy", "Fail");
  setDefault(webhook, "matchPolicy", "Equivalent");
  setDefault(webhook, "namespaceSelector", {});
  setDefault(webhook, "objectSelector", {});
  setDefault(webhook, "timeoutSeconds", 10);
  if (isMutating) setDefault(webhook, "reinvocationPolicy", "Never");
  for (const rule of objectsIn(webhook["rules"])) setDefault(rule, "scope", "*");
  const service = childOf(webhook, "clientConfig")["service"];
  if (isObject(service)) setDefault(service, "port", 443);
}

function clientErrors(config: JsonObject, path: string): readonly FieldError[] {
  if (config["service"] !== undefined) return [];
  const url = asText(config["url"]);
  if (url === "") return [required(path, "exactly one of url or service is required")];
  return url.startsWith("https://")
    ? []
    : [
        invalid(
          `${path}.url`,
          url.split(":")[0],
          `'https' is the only allowed URL scheme; desired format: https://host[/path]`,
        ),
      ];
}

function webhookErrors(webhook: JsonObject, path: string): readonly FieldError[] {
  const name = asText(webhook["name"]);
  const effects = webhook["sideEffects"];
  const versions = asList(webhook["admissionReviewVersions"]);
  const timeout = Number(webhook["timeoutSeconds"]);
  const errors: FieldError[] = [];
  if (name.split(".").length < 3) {
    errors.push(invalid(`${path}.name`, name, "should be a domain with at least three segments separated by dots"));
  }
  if (effects === undefined) errors.push(required(`${path}.sideEffects`, "must specify one of None, NoneOnDryRun"));
  else if (effects !== "None" && effects !== "NoneOnDryRun") {
    errors.push(notSupported(`${path}.sideEffects`, effects, ["None", "NoneOnDryRun"]));
  }
  if (timeout < 1 || timeout > 30) {
    errors.push(invalid(`${path}.timeoutSeconds`, timeout, "the timeout value must be between 1 and 30 seconds"));
  }
  errors.push(...clientErrors(asObject(webhook["clientConfig"]), `${path}.clientConfig`));
  if (versions.length === 0) {
    errors.push(required(`${path}.admissionReviewVersions`, `must specify one of ${VERSIONS.join(", ")}`));
  }
  return errors;
}

export const WEBHOOK_STRATEGY = {
  default(configuration: ApiObject): void {
    const isMutating = configuration.kind === "MutatingWebhookConfiguration";
    for (const webhook of objectsIn(configuration["webhooks"])) defaultWebhook(webhook, isMutating);
  },
  validate: (configuration: ApiObject): readonly FieldError[] =>
    objectsIn(configuration["webhooks"]).flatMap((webhook, index) => webhookErrors(webhook, `webhooks[${index}]`)),
};
