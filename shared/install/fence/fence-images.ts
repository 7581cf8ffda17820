/** Which containers of a pod the reconciler may give another image or other resources. */
import { IS_INJECTED_ENV, TERMINATE_SIDECAR_WITH_IMAGE_ENV } from "../../api/names.ts";
import { celText } from "../../go/json/cel-literal.ts";
import { hasFeature, type Policy } from "./fence-policy.ts";

/** CEL: of containers in `list`, those that are not as they were in that member. */
function changed(list: string, member: string): string {
  return `request.operation != "UPDATE" ? [] : object.spec.?${list}.orValue([]).filter(c, !oldObject.spec.?${list}.orValue([]).exists(o, o.name == c.name && o.?${member} == c.?${member}))`;
}

/** CEL: what `o` was stored with, that is now `c`, has the variable with this value. */
function hasEnv(name: string, value: string): string {
  return `o.?env.orValue([]).exists(e, e.name == ${celText(name)} && e.?value.orValue("") == ${value})`;
}

const IS_INJECTED = hasEnv(IS_INJECTED_ENV, celText("true"));

/** CEL: what `body` makes of the image without its digest, which it calls `named`. */
const ofNamed = (image: string, body: string) => `[${image}.split("@")[0]].map(named, ${body})[0]`;

/** CEL: a colon in front of the last slash is that of a registry's port. */
const HAS_TAG = `named.lastIndexOf(":") > named.lastIndexOf("/")`;

function tagOf(image: string): string {
  return ofNamed(image, `${HAS_TAG} ? named.substring(named.lastIndexOf(":") + 1) : "latest"`);
}

/** CEL: of Docker's registry as if it were not named, which is how runtimes complete a short name. */
function repositoryOf(image: string): string {
  const bare = ofNamed(image, `${HAS_TAG} ? named.substring(0, named.lastIndexOf(":")) : named`);
  const short = `[${bare}].map(full, full.startsWith("docker.io/") ? full.substring(10) : full)[0]`;
  return `[${short}].map(full, full.startsWith("library/") ? full.substring(8) : full)[0]`;
}

function digestOf(image: string): string {
  return `(${image}.contains("@") ? ${image}.split("@")[1] : "")`;
}

/** CEL: the image of `c` means what that of `o` means, or the very thing that runs (shared/core/container-recreate). */
const IS_ALIAS = [
  `${repositoryOf("c.image")} == ${repositoryOf("o.image")}`,
  `((${digestOf("c.image")} != "" && ${digestOf("c.image")} == ${digestOf("o.image")}) || (${tagOf("c.image")} == ${tagOf("o.image")} && (${digestOf("c.image")} == "" || oldObject.status.?containerStatuses.orValue([]).exists(s, s.name == c.name && s.?imageID.orValue("").endsWith("@" + ${digestOf("c.image")})))))`,
].join(" && ");

const IS_ENDING = hasEnv(TERMINATE_SIDECAR_WITH_IMAGE_ENV, "c.image");

/** CEL: each of the containers had a counterpart that may change in this way. */
function each(containers: string, list: string, condition: string): string {
  return `variables.${containers}.all(c, oldObject.spec.?${list}.orValue([]).exists(o, o.name == c.name && (${condition})))`;
}

export const IMAGE_VARIABLES = {
  newImages: changed("containers", "image"),
  newInitImages: changed("initContainers", "image"),
  newResources: changed("containers", "resources"),
  newInitResources: changed("initContainers", "resources"),
} as const;

export const IMAGE_RULES: Policy["validations"] = [
  {
    expression: each(
      "newImages",
      "containers",
      `variables.isOfSet || ${IS_INJECTED} || (${IS_ENDING} && variables.terminates) || (${IS_ALIAS} && variables.recreates)`,
    ),
    message:
      "the reconciler changes the image of no container that was not injected (environment variable IS_INJECTED); infra/rbac/optional/container-recreate.yaml and sidecar-terminator.yaml permit what those features write",
  },
  {
    expression: `${each("newInitImages", "initContainers", `variables.isOfSet || ${IS_INJECTED}`)} && (size(variables.newInitImages) == 0 || variables.isOfSet || ${hasFeature("native-sidecars")})`,
    message:
      "the reconciler changes the image of no init container but a native sidecar that was injected, with infra/rbac/optional/native-sidecars.yaml",
  },
  {
    expression: `request.operation != "UPDATE" || (size(object.spec.containers) == size(oldObject.spec.containers) && size(object.spec.?initContainers.orValue([])) == size(oldObject.spec.?initContainers.orValue([])))`,
    message: "the reconciler adds no containers to a pod, and takes none away",
  },
  {
    expression: `size(variables.newInitResources) == 0 && ${each("newResources", "containers", `variables.isOfSet || ${IS_INJECTED}`)} && (size(variables.newResources) == 0 || (variables.subresource == "resize" && (variables.isOfSet || ${hasFeature("resize")})))`,
    message:
      "the reconciler changes the resources of no container that was not injected, and of those with infra/rbac/optional/resize.yaml",
  },
];
