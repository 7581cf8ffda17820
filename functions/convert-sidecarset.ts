/** Lambda: SidecarSets from one API version to the other. Decides from the review alone. */
import { answerConversions } from "../shared/webhook/conversion.ts";
import { CONVERT_PATH } from "../shared/webhook/paths.ts";
import { convertSidecarSets } from "../shared/webhook/sidecarset-conversion.ts";
import { lambdaWebhook } from "./lambda-http.ts";

export const handler = lambdaWebhook({ conversions: { [CONVERT_PATH]: answerConversions(convertSidecarSets) } });
