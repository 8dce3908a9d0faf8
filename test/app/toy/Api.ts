/** The contract of the toy. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { MeteredRefusal } from "../../../src/calls/metered/Problems.ts"
import { ReadsOwnBody } from "../../../src/http/contract/Annotations.ts"
import { Example, Metered } from "../../../src/http/contract/Documented.ts"
import { KeyOrToken } from "../../../src/people/credentials/Security.ts"
import { Count, Text } from "./Query.ts"

export class WordsApi extends HttpApiGroup.make("words")
  .add(
    HttpApiEndpoint.post("count", "/v1/tools/words")
      .setPayload(Text)
      .addSuccess(Count)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { text: "three words here" } })
      .annotate(Metered, { charge_known: true, says_record: true })
      .annotate(OpenApi.Summary, "Count the words of a text")
  )
  .addError(MeteredRefusal)
  .middleware(KeyOrToken) {}
