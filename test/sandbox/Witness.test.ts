/** The rules of a witness (C2SP tlog-witness), and its check of consistency proofs against every pair of small trees. */
import { describe, expect, it } from "vitest"
import * as Note from "../../src/books/log/Note.ts"
import * as Tree from "../../src/books/log/Tree.ts"
import { isConsistent, Witness } from "../../src/sandbox/Witness.ts"

const origin = "log.example"
const made = Note.newKey()
const key = { name: origin, public: made.public }
const secret = Note.secretKey(made.secret)

const leaves = (size: number, last = "") =>
  Buffer.concat(Array.from({ length: size }, (_, i) => Tree.leafHash(i === size - 1 ? `${i}${last}` : String(i))))

const treeOf = (size: number, last = "") => {
  const { changed, edge } = Tree.append(Tree.emptyEdge, leaves(size, last))
  const tiles = new Map(changed.map(({ hashes, level, n }) => [`${level}/${n}`, hashes]))
  const proof = (old: number) =>
    Tree.rootsOf(Tree.consistencyRanges(old, size), ({ level, n }) => tiles.get(`${level}/${n}`)!)
  return { size, root: Tree.rootOf(edge), proof }
}

const checkpoint = ({ root, size }: { readonly root: Uint8Array; readonly size: number }, name = origin) =>
  Note.signed(Note.checkpointText({ origin: name, size, root }), { ...key, name }, secret)

const body = (old: number, tree: ReturnType<typeof treeOf>, proof = tree.proof(old), note = checkpoint(tree)) =>
  `old ${old}\n${proof.map((hash) => `${hash.toString("base64")}\n`).join("")}\n${note}`

const witnessOf = () =>
  new Witness(
    "w.example",
    async (name) => (name === origin ? [key] : undefined),
    () => 1_700_000_000_999
  )

describe("a consistency proof", () => {
  it("is accepted for all pairs of sizes up to 40, and refused if a bit of it is changed", () => {
    const trees = Array.from({ length: 40 }, (_, i) => treeOf(i + 1))
    for (const to of trees) {
      for (const from of trees.slice(0, to.size)) {
        const proof = to.proof(from.size)
        expect([from.size, to.size, isConsistent({ from, to, proof })]).toEqual([from.size, to.size, true])
        expect(isConsistent({ from, to, proof: [...proof, Buffer.alloc(32)] })).toBe(false)
        for (const i of proof.keys()) {
          const changed = proof.map((hash, j) => (i === j ? Buffer.from(hash.map((byte) => byte ^ 1)) : hash))
          expect(isConsistent({ from, to, proof: changed })).toBe(false)
          expect(isConsistent({ from, to, proof: proof.filter((_, j) => i !== j) })).toBe(false)
        }
        const other = { ...from, root: treeOf(from.size, "x").root }
        expect(isConsistent({ from: other, to, proof })).toBe(false)
      }
    }
  })
})

describe("a witness", () => {
  it("cosigns a log that only grows", async () => {
    const witness = witnessOf()
    for (const [old, size] of [
      [0, 3],
      [3, 300],
      [300, 300],
      [300, 513]
    ] as const) {
      const tree = treeOf(size)
      const reply = await witness.add(body(old, tree))
      expect(reply.status).toBe(200)
      const { text } = Note.partsOf(checkpoint(tree))!
      expect(Note.cosignedAt(String(reply.body).trimEnd(), text, witness.key)).toBe(1_700_000_000)
    }
    expect(Note.cosignerOf(witness.verifier)).toEqual(witness.key)
  })

  it("refuses everything else with the status of the protocol", async () => {
    const witness = witnessOf()
    await witness.add(body(0, treeOf(5)))
    const grown = treeOf(9)
    const forged = checkpoint({ size: 9, root: treeOf(9, "x").root })
    const stranger = Note.signed(Note.checkpointText({ ...grown, origin }), key, Note.secretKey(Note.newKey().secret))
    const cases: ReadonlyArray<readonly [body: string, status: number, reply?: string]> = [
      ["", 400],
      ["old 05\n\n", 400],
      ["old 5\nAAAA\n\n", 400],
      [body(9, treeOf(8), []), 400],
      [
        body(
          5,
          grown,
          Array.from({ length: 64 }, () => Buffer.alloc(32))
        ),
        400
      ],
      [body(5, grown, grown.proof(5), checkpoint(grown, "other.example")), 404],
      [body(5, grown, grown.proof(5), stranger), 403],
      [body(0, grown), 409, "5\n"],
      [body(4, grown), 409, "5\n"],
      [body(5, treeOf(5, "x")), 409, "5\n"],
      [body(5, grown, grown.proof(5), forged), 422],
      [body(5, grown, []), 422]
    ]
    for (const [text, status, reply] of cases) {
      const answer = await witness.add(text)
      expect([text, answer.status]).toEqual([text, status])
      if (reply !== undefined)
        expect([answer.body, answer.headers["content-type"]]).toEqual([reply, "text/x.tlog.size"])
    }
    expect((await witness.add(body(5, grown))).status).toBe(200)
  })
})
