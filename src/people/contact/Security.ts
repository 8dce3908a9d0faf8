/** The security middleware for the contact route. */
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { MissingAuthorization } from "../credentials/Problems.ts"
import { RateLimited } from "../../http/contract/Problems.ts"
import { HeldClientToken } from "./HeldClientToken.ts"
import { InvalidClientToken } from "./Problems.ts"

/** The middleware that checks a client token before the body is read. */
export class ClientTokenOf extends HttpApiMiddleware.Tag<ClientTokenOf>()("tollgate/contact/ClientTokenOf", {
  provides: HeldClientToken,
  failure: Schema.Union(MissingAuthorization, InvalidClientToken, RateLimited),
  security: {
    client_token: HttpApiSecurity.bearer.pipe(
      HttpApiSecurity.annotate(
        OpenApi.Description,
        "`Authorization: Bearer …` with a client token (`POST /v1/web/client-token`). It admits one message within 30 minutes."
      )
    )
  }
}) {}
