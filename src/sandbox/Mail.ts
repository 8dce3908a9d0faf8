/** A mail server that records the emails it accepts. It uses real SMTP on its own port, and a lever lists the emails. */
import { Effect } from "effect"
import type { AddressInfo } from "node:net"
import PostalMime from "postal-mime"
import { SMTPServer } from "smtp-server"
import type { Fault } from "./Faults.ts"
import { json } from "./Outside.ts"
import type { Make, SandboxFailed } from "./Outside.ts"

const lettersMax = 10_000

interface Caught {
  readonly to: string
  readonly subject: string
  readonly text: string
}

export const make: Make = ({ calls, faults }) =>
  Effect.gen(function* () {
    let caught: Array<Caught> = []

    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ["STARTTLS", "AUTH"],
      disableReverseLookup: true,
      logger: false,
      onData: (stream, session, done) => {
        const pieces: Array<Buffer> = []
        stream.on("data", (piece: Buffer) => pieces.push(piece))
        stream.on("end", () => {
          const raw = Buffer.concat(pieces)
          const call = calls.note("mail", "smtp", raw)
          const fault = faults.next("mail")
          const take = async () => {
            if (fault?.drop === true) {
              call.aborted = true
              // Close the connection instead of accepting the email.
              for (const connection of server.connections)
                if (connection.session === session) connection._socket.destroy()
              return
            }
            if (fault?.status !== undefined) return done(replyOf(fault.status))
            const { subject = "", text = "" } = await PostalMime.parse(raw)
            for (const { address } of session.envelope.rcptTo)
              caught.push({ to: address, subject, text: text.trimEnd() })
            caught = caught.slice(-lettersMax)
            done()
          }
          faults.delay(delayOf(fault), () => void take())
        })
      }
    })
    // A client that disconnects is not an error in the sandbox.
    server.on("error", () => {})
    const port = yield* Effect.acquireRelease(listen(server), () => close(server))

    return {
      routes: [],
      levers: [
        {
          method: "GET",
          path: "/control/mail",
          does: "Lists the received emails, oldest first, each with its `to`, `subject` and `text`",
          answer: () => json(200, caught)
        },
        {
          method: "DELETE",
          path: "/control/mail",
          does: "Clears the list of emails",
          answer: () => {
            const count = caught.length
            caught = []
            return json(200, { forgotten: count })
          }
        }
      ],
      configuration: {
        mail: {
          host: "127.0.0.1",
          port,
          from: "Tollgate <no-reply@tollgate.localhost>",
          usd_per_letter: "0.001"
        }
      }
    }
  })

const delayOf = (fault: Fault | undefined): number => fault?.delay_ms ?? 0

/** Builds an error with the status as its SMTP reply code, or with 451 if the status is not from 400 to 599. */
const replyOf = (status: number): Error =>
  Object.assign(new Error("The sandbox was configured to fail."), {
    responseCode: status >= 400 && status <= 599 ? status : 451
  })

const listen = (server: SMTPServer): Effect.Effect<number, SandboxFailed> =>
  Effect.async((resume) => {
    const failed = (error: Error) =>
      resume(Effect.fail({ _tag: "SandboxFailed", message: `the sandbox's mail server: ${error.message}` }))
    server.server.once("error", failed)
    server.listen(0, "127.0.0.1", () => {
      server.server.off("error", failed)
      resume(Effect.succeed((server.server.address() as AddressInfo).port))
    })
  })

const close = (server: SMTPServer): Effect.Effect<void> =>
  Effect.async((resume) => server.close(() => resume(Effect.void)))
