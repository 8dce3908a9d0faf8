/**
 * Sends email over SMTP with nodemailer's composer and connection. Its transport is not used, because it does not report whether a connection ended
 * before or after the email was sent.
 */
import { Effect, Redacted } from "effect"
import MailComposer from "nodemailer/lib/mail-composer"
import SmtpConnection from "nodemailer/lib/smtp-connection"
import { Readable } from "node:stream"
import { addressOf, MailFailed } from "./Mail.ts"
import type { MailSettings, Message } from "./Mail.ts"

export const send = (settings: MailSettings, message: Message): Effect.Effect<void, MailFailed> =>
  Effect.flatMap(
    Effect.promise(() => compose(settings, message)),
    (bytes) => hand(settings, message.to, bytes)
  )

const compose = ({ from }: MailSettings, { id, subject, text, to }: Message): Promise<Buffer> =>
  // Pass the recipient as an object, because a string would be parsed for further recipients.
  new MailComposer({ from, to: { name: "", address: to }, subject, text, messageId: `<${id}>` }).compile().build()

/** Sends one email to the server, over a new connection. */
const hand = (settings: MailSettings, to: string, bytes: Buffer): Effect.Effect<void, MailFailed> =>
  Effect.async((resume) => {
    const { host, password, port, secure, user } = settings
    const connection = new SmtpConnection({
      host,
      port,
      secure,
      connectionTimeout: 10_000,
      greetingTimeout: 10_000,
      socketTimeout: 20_000
    })
    let handedOver = false
    const fail = (error: { readonly message: string; readonly responseCode?: number | undefined }) => {
      connection.close()
      const { message, responseCode } = error
      const how =
        responseCode === undefined ? (handedOver ? "unknown" : "later") : responseCode >= 500 ? "refused" : "later"
      resume(new MailFailed({ how, reason: message.slice(0, 500) }))
    }
    connection.once("error", fail)
    const send = () => {
      // The stream is read only once the server is ready for the email.
      const letter = new Readable({
        read() {
          handedOver = true
          this.push(bytes)
          this.push(null)
        }
      })
      connection.send({ from: addressOf(settings.from), to: [to] }, letter, (error) => {
        if (error !== null) return fail(error)
        connection.quit()
        resume(Effect.void)
      })
    }
    connection.connect((error) => {
      if (error) return fail(error)
      if (user === undefined) return send()
      const pass = password === undefined ? "" : Redacted.value(password)
      connection.login({ user, pass }, (error) => (error === null ? send() : fail(error)))
    })
  })
