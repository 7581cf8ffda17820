/** Lambda that converts SidecarSets between API versions. It decides from the review alone. */
import { answerConversions, convertSidecarSets } from "../../shared/webhook/handlers/sidecarset-conversion.ts";
import { CONVERT_PATH } from "../../shared/webhook/server/paths.ts";
import { lambdaWebhook } from "./http.ts";

export const handler = lambdaWebhook(() => ({
  conversions: { [CONVERT_PATH]: answerConversions(convertSidecarSets) },
}));
