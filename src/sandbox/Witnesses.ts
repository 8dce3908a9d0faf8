/**
 * Two witnesses of the service's log. They are configured only if the sandbox is started with them. A lever shows the newest checkpoints that they
 * have cosigned.
 */
import { Effect } from "effect"
import * as Note from "../books/log/Note.ts"
import type { NoteKey } from "../books/log/Note.ts"
import { json } from "./Outside.ts"
import type { Make } from "./Outside.ts"
import { Witness } from "./Witness.ts"

const names = ["w1", "w2"] as const

/** Reads the log's keys from the service. An operator of a real witness would get them from the log's operator. */
const keysAt = async (url: string, origin: string): Promise<ReadonlyArray<NoteKey>> => {
  const response = await fetch(`${url}/v1/log/keys`)
  const { keys } = (await response.json()) as { readonly keys: ReadonlyArray<string> }
  return keys.flatMap((key) => Note.logKeyOf(key) ?? []).filter(({ name }) => name === origin)
}

export const make: Make = ({ clock, origin }) =>
  Effect.sync(() => {
    let url: string | undefined
    const witnesses = names.map((name) => ({
      name,
      witness: new Witness(
        `${name}.sandbox`,
        async (log) => (url === undefined ? undefined : keysAt(url, log)),
        () => clock.clock.unsafeCurrentTimeMillis()
      )
    }))
    return {
      routes: witnesses.map(({ name, witness }) => ({
        method: "POST",
        path: `/witness/${name}/add-checkpoint`,
        answer: ({ body }) => witness.add(body.toString("utf8"))
      })),
      levers: [
        {
          method: "GET",
          path: "/control/witnesses",
          does: "Lists the witnesses of the log, with their keys and the newest checkpoint that each has cosigned",
          answer: () =>
            json(200, {
              witnesses: witnesses.map(({ name, witness }) => ({
                name: witness.key.name,
                url: `${origin}/witness/${name}`,
                key: witness.verifier,
                logs: [...witness.logs.values()].map(({ origin, root, size }) => ({
                  origin,
                  size,
                  root: Buffer.from(root).toString("base64")
                }))
              }))
            })
        }
      ],
      connect: (address) => {
        url = address
      },
      configuration: {
        log: {
          witnesses: witnesses.map(({ name, witness }) => ({ url: `${origin}/witness/${name}`, key: witness.verifier }))
        }
      }
    }
  })
