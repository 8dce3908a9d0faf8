/** Routes for a user's own passkeys. Signing in with a passkey belongs to the console (`console/Api`). */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Envelope } from "../../kernel/Envelope.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { SignInToken } from "../credentials/Security.ts"
import { AccountNotFound } from "../tenants/Problems.ts"
import { CreationOptions, NewPasskey, Passkey, PasskeyId, Passkeys } from "./Passkey.ts"
import {
  PasskeyNotFound,
  PasskeyRegistered,
  PasskeyRejected,
  PasskeysUnavailable,
  TooManyPasskeys
} from "./Problems.ts"

export class PasskeysApi extends HttpApiGroup.make("passkeys")
  .add(
    HttpApiEndpoint.get("passkeys", "/v1/me/passkeys")
      .addSuccess(Envelope(Passkeys))
      .annotate(OpenApi.Summary, "List my passkeys, oldest first")
  )
  .add(
    HttpApiEndpoint.post("passkeyOptions", "/v1/me/passkeys/options")
      .addSuccess(Envelope(CreationOptions))
      .addError(AccountNotFound)
      .addError(PasskeysUnavailable)
      .addError(TooManyPasskeys)
      .annotate(
        OpenApi.Summary,
        "Begin to register a passkey: returns options for the browser, with a challenge that is valid for five minutes"
      )
  )
  .add(
    HttpApiEndpoint.post("registerPasskey", "/v1/me/passkeys")
      .setPayload(NewPasskey)
      .addSuccess(Envelope(Passkey))
      .addError(InvalidRequest)
      .addError(PasskeyRejected)
      .addError(PasskeyRegistered)
      .addError(PasskeysUnavailable)
      .addError(TooManyPasskeys)
      .annotate(OpenApi.Summary, "Register the passkey that the browser created")
  )
  .add(
    HttpApiEndpoint.del("removePasskey", "/v1/me/passkeys/:passkey_id")
      .setPath(Schema.Struct({ passkey_id: PasskeyId }))
      .addSuccess(Envelope(Schema.Struct({ success: Schema.Literal(true) })))
      .addError(PasskeyNotFound)
      .annotate(OpenApi.Summary, "Delete a passkey, so that it can no longer sign in")
  )
  .middleware(SignInToken) {}
