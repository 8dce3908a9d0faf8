/** How the contact route asks for its credential. */
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { MissingAuthorization } from "../credentials/Problems.ts"
import { RateLimited } from "../../http/contract/Problems.ts"
import { HeldClientToken } from "./HeldClientToken.ts"
import { InvalidClientToken } from "./Problems.ts"

/** A client token, asked for before anything else of the request is read. */
export class ClientTokenOf extends HttpApiMiddleware.Tag<ClientTokenOf>()("tollgate/contact/ClientTokenOf", {
  provides: HeldClientToken,
  failure: Schema.Union(MissingAuthorization, InvalidClientToken, RateLimited),
  security: {
    client_token: HttpApiSecurity.bearer.pipe(
      HttpApiSecurity.annotate(
        OpenApi.Description,
        "`Authorization: Bearer …` with a client token (`POST /v1/web/client-token`). Good for one message, for 30 minutes."
      )
    )
  }
}) {}
