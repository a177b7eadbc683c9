// The same graph as ours, from two files with tabs; an index on names, as ours has on everything.
def globals = [:]
globals << [hook: [onStartUp: { ctx ->
    graph.createIndex("name", org.apache.tinkerpop.gremlin.structure.Vertex.class)
    def made = [:]
    new File("FOLDER/vertices.tsv").eachLine { line ->
        def (id, key, name, age) = line.split("\t")
        made[id] = graph.addVertex(T.id, id, T.label, "person", "pk", key, "name", name, "age", age as int)
    }
    new File("FOLDER/edges.tsv").eachLine { line ->
        def (id, from, to) = line.split("\t")
        made[from].addEdge("knows", made[to], T.id, id)
    }
}] as LifeCycleHook]
globals << [g: graph.traversal()]
