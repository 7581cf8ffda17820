/** Go types of what the library is given besides SidecarSets and pods, as far as it is read here. */
import {
  always,
  BOOLEAN,
  each,
  INT32,
  INT64,
  list,
  map,
  optional,
  pointer,
  RAW,
  STRING,
  struct,
} from "../../shared/go/types/go-type.ts";
import { LABEL_SELECTOR, OBJECT_META } from "../../shared/go/types/meta.ts";

const STATUSES = list(
  struct({
    ...each("name image imageID", always(STRING)),
    ...each("ready started", optional(BOOLEAN)),
    restartCount: optional(INT32),
    ...each(
      "state lastState",
      optional(map(struct({ ...each("reason message", optional(STRING)), exitCode: optional(INT32) }))),
    ),
  }),
);

export const POD_STATUS = struct({
  ...each("phase startTime reason message", optional(STRING)),
  conditions: optional(list(struct(each("type status reason message lastTransitionTime", optional(STRING))))),
  ...each("containerStatuses initContainerStatuses", optional(STATUSES)),
});

export const NAMESPACE = struct({ metadata: always(OBJECT_META) });
export const REVISION = struct({ metadata: always(OBJECT_META), revision: always(INT64), data: optional(RAW) });

const CLIENT_CONFIG = struct({
  url: optional(STRING),
  service: pointer(struct({ ...each("namespace name path", optional(STRING)), port: optional(INT32) })),
  caBundle: optional(STRING),
});

const TEXTS = optional(list(STRING));

/** MutatingWebhookConfiguration and ValidatingWebhookConfiguration. */
export const CONFIGURATION = struct({
  metadata: always(OBJECT_META),
  webhooks: optional(
    list(
      struct({
        ...each("name failurePolicy matchPolicy sideEffects reinvocationPolicy", optional(STRING)),
        clientConfig: optional(CLIENT_CONFIG),
        rules: optional(list(struct(each("operations apiGroups apiVersions resources", TEXTS)))),
        ...each("namespaceSelector objectSelector", pointer(LABEL_SELECTOR)),
        matchConditions: optional(list(struct(each("name expression", always(STRING))))),
        timeoutSeconds: optional(INT32),
      }),
    ),
  ),
});

export const REGISTRATION = struct({
  ...each("name failurePolicy", optional(STRING)),
  ...each("namespaceSelector objectSelector", pointer(LABEL_SELECTOR)),
});

/** CustomResourceDefinition. */
export const DEFINITION_TYPE = struct({
  metadata: always(OBJECT_META),
  spec: optional(
    struct({
      versions: optional(
        list(
          struct({ name: always(STRING), ...each("served storage", optional(BOOLEAN)), schema: optional(map(RAW)) }),
        ),
      ),
      conversion: optional(
        struct({ strategy: optional(STRING), webhook: optional(struct({ clientConfig: optional(CLIENT_CONFIG) })) }),
      ),
    }),
  ),
  status: optional(struct({ storedVersions: TEXTS })),
});
