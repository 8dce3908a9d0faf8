/** How the operator's routes ask for their credential. */
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { InvalidToken, MissingAuthorization } from "../../people/credentials/Problems.ts"
import { CurrentOperator } from "./CurrentOperator.ts"

/** A token of an operator's session, asked for before anything else of the request is read. */
export class OperatorToken extends HttpApiMiddleware.Tag<OperatorToken>()("tollgate/operator/OperatorToken", {
  provides: CurrentOperator,
  failure: Schema.Union(MissingAuthorization, InvalidToken),
  security: {
    operator_token: HttpApiSecurity.bearer.pipe(
      HttpApiSecurity.annotate(
        OpenApi.Description,
        "`Authorization: Bearer …` with a token of an operator's session (`POST /console/operator/session`, or `tollgate operator --token`). " +
          "No user's token is one, and it is no user's."
      )
    )
  }
}) {}
