import { layerMemory, layerTransfersMemory } from "tollgate/testing"
      const MyLedger = { layer: layerMemory }
      const MyTransfers = { layer: layerTransfersMemory }
      const it = async (name: string, check: () => Promise<unknown>) => { await check(); console.log(name) }
import { checkLedger, checkTransfers, ofLayer, transfersOfLayer } from "tollgate/testing"

it("keeps its books", () => checkLedger({ make: ofLayer(MyLedger.layer) }))
it("loses no credit", () => checkTransfers({ make: transfersOfLayer(MyTransfers.layer) }))
